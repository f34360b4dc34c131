"""`fairlane up`: everything on this machine, until Ctrl-C."""

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.server import first_token
from fairlane.cli.worker import refuse_other_than_module_and_app

if TYPE_CHECKING:
    import socket

    from fairlane.cli.activity import Screen
    from fairlane.cli.children import Child
    from fairlane.config import Settings

DEMO_APP = "fairlane.demo:app"


class Stop(BaseException):
    """SIGTERM before there is a loop that could be told."""


@click.command()
@click.option("--demo", is_flag=True, help="Add tenants and a stream of jobs to look at.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where the API listens.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option("--app", "app_path", metavar="MODULE:APP", help="Where the python jobs are defined.")
def up(demo: bool, host: str, port: int, app_path: str | None) -> int:
    """Run everything on this machine, until Ctrl-C.

    A PostgreSQL unless one is configured, its schema brought up to date, the API, a
    worker and a scheduler.
    """
    from fairlane import config

    if demo and app_path:
        raise click.UsageError(
            "--demo brings an app of its own; leave out --demo or --app",
            click.get_current_context(),
        )
    settings = config.load()
    if app_path is not None:
        refuse_other_than_module_and_app(app_path)
        _refuse_what_cannot_be_loaded(app_path)
    _refuse_a_second(settings)
    listening = _listen(host, port)

    signal.signal(signal.SIGTERM, _stop)
    with contextlib.suppress(KeyboardInterrupt, Stop), listening:
        _run(settings, DEMO_APP if demo else app_path, demo, listening)
    return 0


def _listen(host: str, port: int) -> "socket.socket":
    """Ours, and handed to the server: an address that is taken is refused before anything starts,
    and nobody else takes it while a server is replaced."""
    from fairlane.api.limits import Limits
    from fairlane.api.serving import listen

    Limits.of()
    return listen(host, port)


def _refuse_what_cannot_be_loaded(app_path: str) -> None:
    """Before anything starts: a worker would only fail, start again, and fail."""
    from fairlane.worker.main import load_app

    load_app(app_path)


def _refuse_a_second(settings: "Settings") -> None:
    """The first one owns the embedded server, and takes it along when it ends."""
    from fairlane.embedded import adopt
    from fairlane.errors import EmbeddedError

    if settings.database_url is None and adopt(settings.home) is not None:
        raise EmbeddedError(
            f"`fairlane up` runs already in {settings.home}; stop that one first, or add workers "
            "beside it with: fairlane worker"
        )


def _stop(*_: Any) -> None:
    raise Stop


def _run(
    settings: "Settings", app_path: str | None, demo: bool, listening: "socket.socket"
) -> None:
    from fairlane.cli.activity import Screen
    from fairlane.core import migrate
    from fairlane.database import database
    from fairlane.doctor import without_password

    screen = Screen()
    if settings.database_url is None:
        screen.say(f"starting PostgreSQL in {settings.home}")
    with database(settings, start=True) as url:
        screen.say(f"database: {without_password(url)}")
        applied = asyncio.run(migrate.migrate(url))
        screen.say(f"schema: applied {', '.join(applied)}" if applied else "schema: up to date")
        if token := asyncio.run(first_token(url)):
            screen.say(f"operator token, shown this once: {token}")
        else:
            screen.say("sign in with a token of yours, or: fairlane tokens create --role operator")
        try:
            asyncio.run(_until_stopped(url, app_path, demo, screen, listening))
        finally:
            # What is left is the database's own stop: it must not be cut short.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if settings.database_url is None:
            screen.say("stopping PostgreSQL")
    screen.say("stopped")


async def _until_stopped(
    url: str, app_path: str | None, demo: bool, screen: "Screen", listening: "socket.socket"
) -> None:
    from fairlane.api.serving import address_of
    from fairlane.cli.activity import Activity
    from fairlane.cli.children import Child
    from fairlane.cli.readiness import ready

    asked = asyncio.Queue[None]()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.put_nowait, None)

    environment = {**os.environ, "FAIRLANE_DATABASE_URL": url, "PYTHONUNBUFFERED": "1"}
    app = ["--app", app_path] if app_path else []
    fd = listening.fileno()
    serve = ["-m", "fairlane", "server", "--fd", str(fd)]
    children = [
        Child("server", serve, environment, screen.say, keeps=[fd]),
        Child("worker", ["-m", "fairlane", "worker", *app], environment, screen.say),
        Child("scheduler", ["-m", "fairlane", "scheduler"], apart(environment), screen.say),
    ]
    if demo:
        children.append(Child("demo", ["-m", "fairlane.demo"], environment, screen.say))
    for child in children:
        child.start()
    screen.say("Ctrl-C stops everything")

    async def tell() -> None:
        await ready(url, listening)
        at = address_of(listening)
        screen.say(f"API: {at}/api/v1, described at {at}/docs")
        screen.say(f"web pages: {at}/")

    courtesies = [asyncio.create_task(Activity(url, screen).run()), asyncio.create_task(tell())]
    await asked.get()
    for courtesy in courtesies:
        courtesy.cancel()
    screen.close()
    screen.say("stopping: the worker finishes what runs; Ctrl-C again kills it")
    await _stop_all(children, asked)


def apart(environment: dict[str, str]) -> dict[str, str]:
    """The metrics of the scheduler stand on the port after the worker's."""
    port = environment.get("FAIRLANE_METRICS_PORT", "")
    if not port.isdigit() or port == "0":
        return environment
    return {**environment, "FAIRLANE_METRICS_PORT": str(int(port) + 1)}


async def _stop_all(children: "list[Child]", asked: "asyncio.Queue[None]") -> None:
    """Stop them; whoever asks again meanwhile has them killed."""

    async def impatient() -> None:
        await asked.get()
        await asyncio.gather(*(child.stop() for child in children))

    hurry = asyncio.create_task(impatient())
    await asyncio.gather(*(child.stop() for child in children))
    hurry.cancel()
