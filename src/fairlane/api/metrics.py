"""/metrics for Prometheus and /autoscale for KEDA: figures of the whole installation."""

import logging
from ipaddress import ip_address

from fastapi import APIRouter, Request
from starlette.responses import Response

from fairlane.access.roles import Role
from fairlane.api.answers import answer
from fairlane.api.problems import Problem, problem_of
from fairlane.api.route import bearer
from fairlane.api.service import Service
from fairlane.core import json
from fairlane.metrics.catalogue import SERVER
from fairlane.metrics.figures import Figures
from fairlane.metrics.port import may_read, told
from fairlane.metrics.text import CONTENT_TYPE, Page, flag

log = logging.getLogger("fairlane.api")

router = APIRouter(include_in_schema=False)

FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-real-ip")
LOCAL = ("localhost", "127.0.0.1", "[::1]")


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """The process's own figures come whether or not the database answers: a scrape that fails would
    say less."""
    service: Service = request.app.state.fairlane
    try:
        await _admit(request, service)
    except Exception as error:
        return problem_of(error).response()
    figures: Figures | None = None
    try:
        await service.ready()
        figures = await service.installation.figures()
    except Exception as error:
        log.warning("the metrics of the installation are missing: %r", error)
    wrong = await service.readiness.wrong()

    def fill(page: Page) -> None:
        if figures is not None:
            figures.fill(page)
        page.add("fairlane_sse_streams", len(service.hub.streams) if service.is_open else 0)
        page.add("fairlane_ready", flag(wrong is None))

    return Response(told(SERVER, fill), headers={"Content-Type": CONTENT_TYPE})


@router.get("/autoscale")
async def autoscale(request: Request, queue: str = "") -> Response:
    """How many slots a queue could use: what runs and what could start, and nothing that waits for
    its time, at a limit, or for a pause to end."""
    service: Service = request.app.state.fairlane
    try:
        await _admit(request, service)
        if not queue:
            raise Problem(422, "name the queue: /autoscale?queue=default", "invalid")
        await service.ready()
        found = await service.installation.wanted(queue)
        if found is None:
            raise Problem(404, f'there is no queue "{json.shortened(queue, 80)}"', "not-found")
    except Exception as error:
        return problem_of(error).response()
    return answer({"queue": queue, **found})


async def _admit(request: Request, service: Service) -> None:
    """From this machine, or with the metrics' own token, or with an operator's. Once they have a
    token of their own, this machine needs one too: a proxy may stand on it."""
    settings = service.settings
    if may_read(request.headers.get("authorization"), settings.metrics_token):
        return
    token = bearer(request)
    # Where a proxy stands before the server, it may stand on this machine, and all come from here.
    has_proxy = settings.base_url is not None or bool(settings.trusted_proxies)
    alone = settings.metrics_token is None and not has_proxy
    if token is None and alone and _is_from_here(request):
        return
    await service.ready()
    who = await service.door.admit(token)
    if who.role is not Role.OPERATOR:
        raise Problem(403, f"this needs the role operator; yours is {who.role}", "forbidden")


def _is_from_here(request: Request) -> bool:
    """By address, and not passed on by a proxy that says so, or that speaks HTTP/1.0 as a proxy
    with no settings of its own does (nginx); the name that was asked for keeps a page in somebody's
    browser from reading it."""
    if request.client is None or any(name in request.headers for name in FORWARDED):
        return False
    if request.scope.get("http_version") == "1.0":
        return False
    try:
        here = ip_address(request.client.host).is_loopback
    except ValueError:
        return False
    host = request.headers.get("host", "").lower()
    name, _, port = host.rpartition(":")
    return here and (host in LOCAL or (name in LOCAL and port.isdigit()))
