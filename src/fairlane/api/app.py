"""The application: `fairlane.asgi()` whole, `fairlane.router()` for an application of your own."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from fairlane import config
from fairlane.api import (
    dead_letters,
    definitions,
    documents,
    events,
    health,
    items,
    jobs,
    me,
    metrics,
    operations,
    streams,
    triggers,
    usage,
    worker,
)
from fairlane.api.admin import alerts, ops, overview, plans, queues, tenants, workers
from fairlane.api.correlating import HEADER, Correlated, correlated
from fairlane.api.docs_page import PAGE
from fairlane.api.limits import Limits
from fairlane.api.problems import problem_of
from fairlane.api.service import Service
from fairlane.config import Settings

# In the order that they are tried: what is called most comes first.
RESOURCES: tuple[APIRouter, ...] = (
    triggers.first,  # a job's id might be "triggers"
    jobs.hot,
    jobs.router,
    jobs.batches,
    items.router,
    streams.router,
    me.router,
    definitions.router,
    dead_letters.router,
    operations.router,
    events.router,
    triggers.router,
    definitions.admin,
    tenants.router,
    plans.router,
    queues.router,
    alerts.router,
    overview.router,
    workers.router,
    ops.router,
    usage.router,
    worker.router,
)


def asgi(
    url: str | None = None,
    *,
    settings: Settings | None = None,
    limits: Limits | None = None,
    pages: bool = False,
) -> FastAPI:
    """An application of its own, to be served or mounted: the calls, their document, health; with
    `pages` the web pages beside them."""
    service = _service(url, settings, limits)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with _open(service):
            yield

    app = FastAPI(
        title="Fairlane",
        version="1",
        summary="A multi-tenant job platform on PostgreSQL.",
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.fairlane = service
    app.add_middleware(Correlated)
    app.router.routes.extend(_calls())
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.add_exception_handler(HTTPException, _told)
    app.add_exception_handler(Exception, _told)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(PAGE, headers={"Content-Security-Policy": CONTENT})

    if pages:
        from fairlane.web.app import beside

        app.router.routes.append(beside(service))
    return app


def router(
    url: str | None = None, *, settings: Settings | None = None, limits: Limits | None = None
) -> APIRouter:
    """The calls alone, for `web.include_router(fairlane.router())`; they keep their prefix
    /api/v1, open with the application's lifespan and close with it."""
    service = _service(url, settings, limits)

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        app.state.fairlane = service
        async with _open(service):
            yield

    found = APIRouter(lifespan=lifespan)
    found.routes.extend(_calls())
    return found


def _calls() -> list[BaseRoute]:
    """All routes in one list: each router that is included in another is a step on every call's
    way."""
    return [route for resource in RESOURCES for route in resource.routes]


def _service(url: str | None, settings: Settings | None, limits: Limits | None) -> Service:
    settings = settings or config.load()
    return Service(settings, url, limits or Limits.of())


@contextlib.asynccontextmanager
async def _open(service: Service) -> AsyncIterator[None]:
    await service.ready()
    try:
        yield
    finally:
        await service.close()


def _document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = documents.document(app)
    return app.openapi_schema


async def _told(request: Request, error: Exception) -> Response:
    response = problem_of(error).response()
    response.headers[HEADER] = correlated(request.scope)
    return response


CONTENT = "default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"

DESCRIPTION = """\
Every call carries `Authorization: Bearer TOKEN`. Errors are problem documents (RFC 9457). Times
are RFC 3339 in UTC. Lists take `limit` and `cursor` and answer `items` and `next_cursor`. Each call
says by `x-fairlane-role` the lowest role that may make it: viewer < member < admin inside one
tenant, operator over all, worker for the worker calls alone."""
