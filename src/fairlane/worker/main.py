"""`fairlane worker`: one worker, or a supervisor of several."""

import asyncio
import importlib
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import uvloop

from fairlane.app import Fairlane
from fairlane.config import Settings
from fairlane.core import migrate
from fairlane.core.connect import connected
from fairlane.core.garbage import look_less_often
from fairlane.database import database
from fairlane.errors import ConfigError, FairlaneError
from fairlane.executors.tree import follow_parent
from fairlane.metrics.catalogue import WORKER
from fairlane.metrics.port import nothing, served
from fairlane.metrics.working import Working
from fairlane.observe import exporting
from fairlane.worker.supervisor import DRAINED, PARENT, supervise
from fairlane.worker.worker import Worker

log = logging.getLogger("fairlane.worker")

LAST_WORDS = 25.0  # seconds beyond its grace that a worker may take to stop


def run(app_path: str | None, queues: dict[str, int], processes: int, settings: Settings) -> int:
    """Work until SIGTERM or SIGINT; the exit status."""
    if processes > 1:
        # Refused once, here, and not by each child again and again.
        with database(settings, start=False) as url:
            load_app(app_path) if app_path else None
            asyncio.run(_slots(url, queues))
        return supervise(
            processes,
            sys.argv[1:],
            patience=settings.grace_seconds + LAST_WORDS,
            metrics_port=settings.metrics_port,
        )
    if parent := os.environ.get(PARENT):
        # A supervisor that was killed must not leave workers that nobody watches.
        follow_parent(signal.SIGTERM, int(parent))
    app = load_app(app_path) if app_path else Fairlane(settings=settings)
    return _run(app, queues, settings)


def run_worker(app: Fairlane, queues: Mapping[str, int] | None = None) -> None:
    """Work off the jobs of an application until SIGTERM or Ctrl-C, as `fairlane worker --app` does.

    For a command of your own. `queues` says how many slots each has; all queues with their own
    slots if not given.
    """
    from fairlane.observe.logs import log_to_stderr

    log_to_stderr(app.settings)
    _run(app, dict(queues or {}), app.settings)


def _run(app: Fairlane, queues: dict[str, int], settings: Settings) -> int:
    with database(settings, start=False) as url:
        exporting.start("fairlane-worker")  # unless the app has its own
        try:
            return uvloop.run(_work(app, url, queues, settings))
        finally:
            exporting.flush()


async def _work(app: Fairlane, url: str, queues: dict[str, int], settings: Settings) -> int:
    working = None if settings.metrics_port is None else Working()
    worker = Worker(
        app,
        url,
        await _slots(url, queues),
        metrics=working,
        lease_seconds=settings.lease_seconds,
        poll_seconds=settings.poll_seconds,
        grace_seconds=settings.grace_seconds,
    )
    look_less_often()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    async with served(settings, WORKER, working.fill if working else nothing):
        await worker.run()
    status = DRAINED if worker.drained and PARENT in os.environ else 0
    if worker.left_running:
        # Its job has gone back to its lane. What cannot be stopped must not outlive that.
        log.error("%d calls did not stop; the process ends with them", worker.left_running)
        exporting.flush()
        logging.shutdown()
        os._exit(status)
    return status


async def _slots(url: str, queues: dict[str, int]) -> dict[str, int]:
    """The queues to serve: those asked for, or all with their own slots."""
    async with connected(url) as connection:
        await migrate.check(connection)
        slots = {
            row["name"]: row["slots"]
            for row in await connection.fetch("select name, slots from fairlane.queue")
        }
    if unknown := sorted(set(queues) - set(slots)):
        raise ConfigError("--queue", f"one of {', '.join(sorted(slots))}", got=f'"{unknown[0]}"')
    return queues or slots


def load_app(path: str) -> Fairlane:
    """The app behind MODULE:APP."""
    module_name, _, attribute = path.partition(":")
    if not attribute:
        raise ConfigError("--app", "like MODULE:APP", got=f'"{path}"')
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise FairlaneError(f'--app {path}: "{module_name}" cannot be imported: {error}') from error
    found = module
    for part in attribute.split("."):
        found = getattr(found, part, None)  # type: ignore[assignment]
    if not isinstance(found, Fairlane):
        apps = sorted(name for name, value in vars(module).items() if isinstance(value, Fairlane))
        there = f"there is: {', '.join(apps)}" if apps else "there is none in it"
        raise FairlaneError(
            f'--app {path}: "{attribute}" in {module_name} is no Fairlane app; {there}'
        )
    return found
