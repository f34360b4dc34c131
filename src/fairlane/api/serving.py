"""Serving the application on a socket until it is told to stop."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlane.api.app import asgi
from fairlane.api.doorway import doorway
from fairlane.api.service import Service
from fairlane.config import Settings
from fairlane.errors import ConfigError

GRACE = 20  # seconds for calls that are under way
LAST = 3  # and then for those whose connections were cut
BACKLOG = 2048


class Server(uvicorn.Server):
    """One that leaves signals to us: SIGTERM ends it in good order, with status 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Whoever does not send the rest of a call, or does not read its answer, is cut off."""
        cutting = asyncio.get_running_loop().call_later(GRACE, self._cut)
        try:
            await super().shutdown(sockets)
        finally:
            cutting.cancel()

    def _cut(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on; they wait until somebody serves them."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        raise ConfigError(
            "--host and --port", f"an address that is free ({error.strerror})", got=f"{host}:{port}"
        ) from None
    return listening


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


async def serve(
    url: str, settings: Settings, listening: socket.socket, ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends what is still under way."""
    app = asgi(url, settings=settings, pages=True)
    service: Service = app.state.fairlane
    server = Server(
        uvicorn.Config(
            _stoppable(app, service),
            loop="none",
            http=doorway(service.limits.connections),
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE + LAST,
        )
    )

    def stop() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True
        service.stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await service.ready()
    ready()
    await server.serve(sockets=[listening])


def _stoppable(app: ASGIApp, service: Service) -> ASGIApp:
    """A call that is ended because the server stops is no error to be told."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            if scope["type"] != "http" or not service.stopping.is_set():
                raise

    return call
