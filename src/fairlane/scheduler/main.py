"""`fairlane scheduler`: one process that tries to schedule, until it is told to stop."""

import asyncio
import logging
import signal

import uvloop

from fairlane.config import Settings
from fairlane.core import migrate
from fairlane.core.connect import connected
from fairlane.core.garbage import look_less_often
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
    look_less_often()
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
