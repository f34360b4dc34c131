"""The web pages: `create_ui(service)` beside the API, `fairlane.ui()` in your application."""

import contextlib
import inspect
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.types import Scope

from fairlane import config
from fairlane.access.principal import Principal
from fairlane.access.refusals import Forbidden, Unauthenticated
from fairlane.access.roles import Role
from fairlane.api.correlating import HEADER, correlated
from fairlane.api.limits import BODY, Buckets, Limits
from fairlane.api.problems import Problem, not_there, problem_of
from fairlane.api.service import Service
from fairlane.config import Settings
from fairlane.errors import TenantNotFound
from fairlane.web import forgery
from fairlane.web.headers import guard
from fairlane.web.live import Feed
from fairlane.web.pages import PAGES, Page
from fairlane.web.proxies import Front, front_of
from fairlane.web.sessions import Session, Sessions
from fairlane.web.statics import statics
from fairlane.web.templating import Templates
from fairlane.web.urls import Urls
from fairlane.web.visit import FRAGMENT, Visit

log = logging.getLogger("fairlane.web")

SESSION = "fairlane_session"
FORM = "fairlane_form"


@dataclass(frozen=True)
class User:
    """Somebody as the application that the pages are mounted in knows them."""

    subject: str
    role: str
    tenant: str | None = None


Auth = Callable[[Request], "User | Awaitable[User | None] | None"]


class UI:
    """What all visits of one process share."""

    def __init__(self, service: Service, auth: Auth | None = None) -> None:
        self.service = service
        self.auth = auth
        self.pages = PAGES
        self.urls = Urls({page.name: page.path for page in PAGES})
        self.statics = statics()
        self.templates = Templates(self.statics.version)
        self.feed = Feed(service)
        # Of one address: ten at once, then one in five seconds; none where calls have no limit.
        self.logins = Buckets(rate=0.2 if service.limits.rate else 0, burst=10)

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.service.database)

    def over_all(self, who: Principal) -> Principal:
        """An operator, acting for no tenant in particular."""
        if who.role is not Role.OPERATOR:
            raise Forbidden("only an operator looks at all tenants")
        return Principal(who.subject, who.role, token_id=who.token_id, expires_at=who.expires_at)

    # The way of every request ----------------------------------------------

    async def answer(self, page: Page, request: Request) -> Response:
        request_id = correlated(request.scope, request.headers)
        front = front_of(request, self.service.settings)
        visit = Visit(self, request, page, front, None, self._form_secret(request))
        try:
            response = await self._answered(page, visit)
        except Exception as error:
            response = await self._refused(visit, error)
        if FORM not in request.cookies and response.status_code < 400 and not visit.wants:
            visit.set_cookie(response, FORM, visit.form_secret)
        response.headers[HEADER] = request_id
        return guard(response)

    async def _answered(self, page: Page, visit: Visit) -> Response:
        request = visit.request
        if page.needs_nothing:
            return await page.view(visit)
        await self.service.ready()
        await self._admit(visit)
        if request.method == "POST":
            forgery.refuse_other_sites(request, visit.front)
            visit.form = await _form(request)
        if page.needs is not None and not visit.is_signed_in:
            # Before the form's word is looked at: that of a session that has ended is not it.
            return self._to_login(visit)
        if request.method == "POST" and page.is_guarded:
            given = visit.field(forgery.FIELD) or request.headers.get(forgery.HEADER)
            forgery.refuse_without_token(given, visit.secret)
        if page.needs is not None:
            if not page.lets_in(visit.who):
                detail = f"this page needs the role {page.needs}; yours is {visit.who.role}"
                raise Problem(403, detail, "forbidden", extra={"needs": page.needs.value})
            await self._narrow(visit)
        return await page.view(visit)

    def _form_secret(self, request: Request) -> str:
        return request.cookies.get(FORM) or secrets.token_urlsafe(24)

    async def _admit(self, visit: Visit) -> None:
        """Find out who this is, where somebody is signed in at all."""
        if self.auth is not None:
            found = self.auth(visit.request)
            user = await found if inspect.isawaitable(found) else found
            visit.admit(None if user is None else await self._principal(user))
        else:
            session = await self.sessions.find(visit.request.cookies.get(SESSION))
            if session is not None:
                visit.admit(session.who, session)

    async def _principal(self, user: User) -> Principal:
        """The host vouches for who it is; the tenant must be one of ours."""
        over_all = Principal(user.subject, Role.OPERATOR)
        role = Role(user.role)
        if user.tenant is None:
            return Principal(user.subject, role)
        found = await self.service.door.acting_for(over_all, user.tenant)
        return Principal(user.subject, role, found.tenant, found.tenant_id)

    async def _narrow(self, visit: Visit) -> None:
        """To the tenant that the path names; another's is not there."""
        named = visit.request.path_params.get("tenant")
        if named is None:
            if visit.is_operator:
                visit.admit(self.over_all(visit.who), visit.session)
            return
        try:
            who = await self.service.door.acting_for(visit.who, named)
        except (Forbidden, TenantNotFound):
            visit.admit(visit.who, visit.session)
            raise not_there("tenant") from None
        visit.admit(who, visit.session)

    def _to_login(self, visit: Visit) -> Response:
        if visit.wants or visit.request.method != "GET" or visit.page.name == "events":
            raise Unauthenticated("sign in first; the session has ended")
        if self.auth is not None:
            raise Problem(403, "your account has no access to these pages", "forbidden")
        asked = visit.request.url.path.removeprefix(visit.request.scope.get("root_path", ""))
        query = visit.request.url.query
        back = f"{visit.front.root}{asked}" + (f"?{query}" if query else "")
        return RedirectResponse(visit.u("login", next=back), 303)

    async def _refused(self, visit: Visit, error: Exception) -> Response:
        """The problem as a page that keeps its shell; as a word for scripts."""
        problem = problem_of(error)
        if isinstance(error, HTTPException) and problem.status in (404, 405):
            problem = Problem(problem.status, "there is no such page", "no-such-page")
        if problem.status >= 500:
            log.warning("%s answered %d: %s", visit.page.path, problem.status, problem.detail)
        request = visit.request
        if request.headers.get("x-quiet") or request.headers.get(FRAGMENT):
            said = {"said": problem.detail, "status": problem.status}
            return JSONResponse(said, problem.status)
        visit.request.scope["headers"] = [
            pair for pair in visit.request.scope["headers"] if pair[0] != b"x-fragment"
        ]
        try:
            return await visit.show("problem.html", problem.status, problem=problem)
        except Exception as second:
            # Where even the shell cannot be had, the database is away.
            log.warning("the page of a problem could not be shown: %s", second)
            visit.leave()
            return await visit.show("problem.html", problem.status, problem=problem)


async def _form(request: Request) -> Any:
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > BODY:
        raise Problem(413, f"a form has at most {BODY} bytes", "too-large")
    return await request.form(max_fields=2000, max_part_size=BODY)


def create_ui(service: Service, auth: Auth | None = None) -> Starlette:
    """The pages over a service that others may share. It starts with the first request, where
    nobody has started it: a mounted application's lifespan is run by nobody."""
    ui = UI(service, auth)

    def endpoint(page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await ui.answer(page, request)

        return answer

    routes = [
        Route(page.path, endpoint(page), methods=[page.method], name=page.name) for page in PAGES
    ]

    async def unknown(request: Request, error: Exception) -> Response:
        lost = Page("lost", request.url.path, _lost)
        return await ui.answer(lost, request)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.ready()
        try:
            yield
        finally:
            await service.close()

    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={404: unknown, 405: unknown}
    )
    app.state.ui = ui
    return app


async def _lost(visit: Visit) -> Response:
    raise Problem(404, "there is no such page", "no-such-page")


def ui(
    url: str | None = None,
    *,
    settings: Settings | None = None,
    limits: Limits | None = None,
    auth: Auth | None = None,
) -> Starlette:
    """The web pages, to be mounted: `web.mount("/fairlane", fairlane.ui())`.

    `auth` maps a request of your application to a `fairlane.web.app.User`, or to None; without it
    the pages have a sign-in of their own."""
    service = Service(settings or config.load(), url, limits or Limits.of())
    return create_ui(service, auth)


class Beside(Mount):
    """The pages at the root of the server, for all paths that are no call's."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if str(scope["path"]).removeprefix(scope.get("root_path", "")).startswith("/api/"):
            return Match.NONE, {}
        return super().matches(scope)


def beside(service: Service) -> Mount:
    return Beside("/", create_ui(service))


__all__ = ["UI", "Auth", "Front", "Session", "User", "create_ui", "ui"]
