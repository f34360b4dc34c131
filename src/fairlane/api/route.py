"""The way of every call: who is it, may they, is the body small enough; then the call itself."""

import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
from typing import Any, get_type_hints

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.access.refusals import Forbidden
from fairlane.access.roles import Role
from fairlane.api.bodies import decoded
from fairlane.api.correlating import HEADER, correlated
from fairlane.api.documents import rule
from fairlane.api.limits import BATCH_BODY, BODY
from fairlane.api.permits import WHO, Permit
from fairlane.api.problems import Problem, problem_of
from fairlane.api.service import Service
from fairlane.core import json
from fairlane.errors import Fault

log = logging.getLogger("fairlane.api")

PREFIX = "/api/v1"
FAULTS = 20  # that are listed

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Route(APIRoute):
    """A call with a rule: one of its arguments says by its type who may make it."""

    body_limit = BODY

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        extra = options.get("openapi_extra") or {}
        options["openapi_extra"] = {**rule(permit_of(path, endpoint)), **extra}
        super().__init__(path, endpoint, **options)

    def handler(self) -> Handler:
        """What makes the call: FastAPI, which reads the body and solves what is depended on."""
        return super().get_route_handler()

    def get_route_handler(self) -> Handler:
        handle = self.handler()
        permit = permit_of(self.path, self.endpoint)
        limit = self.body_limit
        name = self.path_format
        known = {"tenant", *_parameters(self.dependant)}

        async def guarded(request: Request) -> Response:
            correlation = correlated(request.scope, request.headers)
            try:
                service: Service = request.app.state.fairlane
                await service.ready()
                request.scope[WHO] = await admitted(service, request, permit)
                if request.scope["query_string"]:
                    refuse_unknown(request, known)
                request = Bounded(request, limit)
                response = await handle(request)
            except ClientDisconnect:
                response = Response(status_code=499)  # nobody reads it, and it is no error of ours
            except Exception as error:
                response = told(error, name)
            response.headers[HEADER] = correlation
            return response

        return guarded


class HotRoute(Route):
    """A call that is made so often that it reads its body itself: it takes the request and `who`,
    and nothing that FastAPI would have to find out."""

    def handler(self) -> Handler:
        endpoint = self.endpoint

        async def handle(request: Request) -> Response:
            response: Response = await endpoint(request, request.scope[WHO])
            return response

        return handle


class BatchRoute(Route):
    """A call whose body is many."""

    body_limit = BATCH_BODY


def permit_of(path: str, endpoint: Callable[..., Any]) -> Permit:
    """The rule in a call's signature; a call without one cannot be made."""
    found = [
        each.dependency
        for hint in get_type_hints(endpoint, include_extras=True).values()
        for each in getattr(hint, "__metadata__", ())
        if isinstance(getattr(each, "dependency", None), Permit)
    ]
    if len(found) != 1:
        raise TypeError(f"{path}: one argument must say who may call it, and {len(found)} do")
    permit: Permit = found[0]
    return permit


async def admitted(service: Service, request: Request, permit: Permit) -> Principal:
    """Whoever calls, if they may; an operator narrowed to the tenant that it names."""
    who = await service.door.admit(bearer(request))
    service.buckets.take(who.subject)
    if not permit.lets_in(who):
        raise Problem(
            403, f"this needs the role {permit.permission}; yours is {who.role}", "forbidden"
        )
    named = request.headers.get("x-fairlane-tenant") or request.query_params.get("tenant")
    if named is not None and named != who.tenant:
        if who.role is not Role.OPERATOR:
            raise Forbidden(
                f'this token acts for tenant "{who.tenant}" alone'
                if who.tenant is not None
                else f"a {who.role} acts for no tenant; leave out X-Fairlane-Tenant and ?tenant="
            )
        who = await service.door.acting_for(who, named)
    if permit.of_tenant and who.tenant is None:
        raise Problem(
            422, "name the tenant to act for: X-Fairlane-Tenant, or ?tenant=", "tenant-needed"
        )
    return who


def refuse_unknown(request: Request, known: Collection[str]) -> None:
    """A filter that is misspelt would show, or change, all that it was to leave out."""
    faults = [
        Fault(f"query:{json.shortened(name)}", "this call has no such parameter")
        for name in request.query_params
        if name not in known
    ][:FAULTS]
    if faults:
        raise Problem(422, f"the request is invalid: {faults[0]}", "invalid", faults)


def _parameters(dependant: Dependant) -> Iterator[str]:
    """The names of what a call, and all that it depends on, takes in its query."""
    for each in dependant.query_params:
        yield each.alias
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def bearer(request: Request) -> str | None:
    scheme, _, token = (request.headers.get("authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def told(error: Exception, name: str) -> Response:
    problem = problem_of(error)
    if problem.status >= 500:
        log.warning("%s answered %d: %s", name, problem.status, problem.detail)
    return problem.response()


class Bounded(Request):
    """A request whose body is not read past its limit."""

    def __init__(self, request: Request, limit: int) -> None:
        super().__init__(request.scope, request.receive)
        self._headers = request.headers  # read once
        self._limit = limit
        length = self._headers.get("content-length", "")
        comes = length not in ("", "0") or "transfer-encoding" in self._headers
        if length.isascii() and length.isdigit() and int(length) > limit:
            raise self._too_large()
        if comes and not _is_json(request.headers.get("content-type", "")):
            raise Problem(415, "the body must be JSON: Content-Type: application/json", "not-json")

    async def stream(self) -> AsyncIterator[bytes]:  # type: ignore[override]
        size = 0
        async for chunk in super().stream():
            size += len(chunk)
            if size > self._limit:
                raise self._too_large()
            yield chunk

    async def json(self) -> Any:
        """As FastAPI asks for it."""
        return decoded(await self.body())

    def _too_large(self) -> Problem:
        return Problem(413, f"the body is larger than {self._limit} bytes", "too-large")


def _is_json(content_type: str) -> bool:
    kind, _, more = content_type.lower().partition(";")
    kind = kind.strip()
    charsets = [each.strip() for each in more.split(";") if each.strip().startswith("charset=")]
    if any(each.strip('"') not in UTF_8 for each in charsets):
        return False
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )


UTF_8 = ("charset=utf-8", 'charset="utf-8', "charset=utf8")
