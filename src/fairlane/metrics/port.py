"""A port of its own for a worker's or a scheduler's /metrics and /healthz."""

import hmac
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fairlane.config import Settings
from fairlane.errors import ConfigError
from fairlane.metrics.text import CONTENT_TYPE, Page, names_of
from fairlane.version import VERSION

log = logging.getLogger("fairlane.metrics")


def told(part: str, fill: Callable[[Page], None]) -> str:
    """The page of one part of the product, with what prometheus_client tells of the process."""
    from prometheus_client import REGISTRY, generate_latest

    page = Page()
    page.add("fairlane_build_info", 1, VERSION, part)
    fill(page)
    return page.text(names_of(part)) + generate_latest(REGISTRY).decode()


def may_read(authorization: str | None, token: str | None) -> bool:
    """Does somebody show the token of the metrics, where there is one?"""
    scheme, _, shown = (authorization or "").partition(" ")
    return token is not None and (
        scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token.encode())
    )


def nothing(page: Page) -> None:
    """A process with nothing of its own to tell."""


@asynccontextmanager
async def served(
    settings: Settings, part: str, fill: Callable[[Page], None]
) -> AsyncIterator[int | None]:
    """Serve while the block runs, if a port was asked for; which one it is."""
    if settings.metrics_port is None:
        yield None
        return
    # Whoever does not ask for a port does not pay for the import.
    from aiohttp import web

    async def metrics(request: web.Request) -> web.Response:
        shown = request.headers.get("Authorization")
        if settings.metrics_token is not None and not may_read(shown, settings.metrics_token):
            return web.Response(
                status=401, text="the metrics need their token: FAIRLANE_METRICS_TOKEN\n"
            )
        return web.Response(body=told(part, fill).encode(), headers={"Content-Type": CONTENT_TYPE})

    async def healthz(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "part": part, "pid": os.getpid()})

    app = web.Application(client_max_size=1024)
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.metrics_host, settings.metrics_port)
        try:
            await site.start()
        except OSError as error:
            raise ConfigError(
                "FAIRLANE_METRICS_HOST and FAIRLANE_METRICS_PORT",
                f"an address that is free ({error.strerror})",
                got=f"{settings.metrics_host}:{settings.metrics_port}",
            ) from None
        host, port = runner.addresses[0][:2]
        log.info("metrics at http://%s:%d/metrics", host, port)
        yield port
    finally:
        await runner.cleanup()
