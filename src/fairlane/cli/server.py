"""`fairlane server`: the HTTP API."""

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

import click


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option("--fd", type=int, hidden=True, help="A socket that listens already.")
def server(host: str, port: int, fd: int | None) -> int:
    """Serve the HTTP API, until SIGTERM or Ctrl-C.

    As many as wanted, behind a load balancer. The first start of all prints an operator token.
    """
    from fairlane import config
    from fairlane.api.limits import Limits
    from fairlane.api.serving import address_of, listen, serve
    from fairlane.database import database
    from fairlane.observe import exporting
    from fairlane.observe.logs import log_to_stderr

    settings = config.load()
    log_to_stderr(settings)
    exporting.start("fairlane-server")
    Limits.of()  # a wrong one is refused before anything listens
    listening = listen(host, port) if fd is None else socket.socket(fileno=fd)
    with database(settings, start=False) as url, listening:
        if fd is None:
            tell_first_token(url)
        said = f"listening on {address_of(listening)}"
        try:
            _run(serve(url, settings, listening, lambda: click.echo(said)))
        finally:
            exporting.flush()
    return 0


def _run(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def tell_first_token(url: str) -> None:
    """The one moment when an operator token is made by itself: nobody could make one otherwise."""
    token = asyncio.run(first_token(url))
    if token is not None:
        click.echo(f"operator token, shown this once: {token}")


async def first_token(url: str) -> str | None:
    from fairlane.access.tokens import first_operator_token
    from fairlane.core import connect, migrate

    async with connect.connected(url, name="fairlane server") as connection:
        await migrate.check(connection)
        return await first_operator_token(connection)
