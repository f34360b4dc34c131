"""`fairlane scheduler`: one process that tries to schedule, until it is told to stop."""

import asyncio
import gc
import logging
import signal

import uvloop

from fairlane.config import Settings
from fairlane.core import migrate
from fairlane.core.connect import connected
from fairlane.database import database
from fairlane.metrics.catalogue import SCHEDULER
from fairlane.metrics.port import served
from fairlane.metrics.scheduling import Scheduling
from fairlane.scheduler.scheduler import Scheduler

log = logging.getLogger("fairlane.scheduler")


def run(settings: Settings) -> int:
    """Schedule until SIGTERM or SIGINT; the exit status."""
    with database(settings, start=False) as url:
        return uvloop.run(_schedule(url, settings))


async def _schedule(url: str, settings: Settings) -> int:
    async with connected(url) as connection:
        await migrate.check(connection)
    # A batch is thousands of small objects, which are all gone a moment later: looking among them
    # for cycles every few hundred is a tenth of the work.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    metrics = Scheduling()
    scheduler = Scheduler(url, metrics)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, scheduler.stop)
    async with served(settings, SCHEDULER, metrics.fill):
        log.info("scheduler %s is ready", scheduler.id)
        await scheduler.run()
    log.info("scheduler %s has stopped", scheduler.id)
    return 0
