"""Watches over the installation: evaluates alerts, and holds the product to its own promises."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import asyncpg

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.errors import FairlaneError
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.alerts")

EVERY = 5.0  # seconds between two looks, of however many processes
LOOK_AGAIN = 1.0  # at whether this process leads
LONGEST = 2.0  # seconds: a look that takes longer is canceled, what is watched comes first

LOOK = Call("select * from fairlane.watch_over()")  # an idle worker asks little: one statement

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "critical": logging.ERROR}

Acquire = Callable[[], AbstractAsyncContextManager[Any]]


class Watcher:
    """Looks while its process leads. The database sees to it that nothing is told twice."""

    def __init__(self, acquire: Acquire, leads: Callable[[], bool]) -> None:
        self._acquire = acquire
        self._leads = leads
        self._looked = time.monotonic()  # who starts has other things to do first

    async def run(self) -> None:
        patience = Patience()
        while True:
            try:
                if self._leads() and time.monotonic() - self._looked >= EVERY:
                    self._looked = time.monotonic()
                    await self.tick()
                patience.reset()
            except patience.passing as error:
                log.info("not watching, the database is away: %s", error)
                await patience.wait()
            except Exception:
                # Whatever is wrong with the watch, the jobs that run have nothing to do with it.
                log.exception("watching failed; it goes on")
            await asyncio.sleep(LOOK_AGAIN)

    async def tick(self) -> None:
        """One look at everything."""
        async with self._acquire() as connection:
            rows = await self._look(connection)
        for row in rows:
            match row["event"]:
                case "broken":
                    name, seen = row["rule"], row["summary"]
                    log.error("promise %s is broken: %s; see: fairlane doctor", name, seen)
                case "failed":
                    log.error("%s failed: %s; see: fairlane doctor", row["rule"], row["summary"])
                case event:
                    level = logging.INFO if event == "resolved" else _LEVELS[row["severity"]]
                    told = row["rule"], event.replace("_", " "), row["summary"]
                    log.log(level, "alert %s, %s: %s", *told)

    async def _look(self, connection: Connection) -> list[Record]:
        try:
            # Not by statement_timeout, which would take two more statements a look.
            async with asyncio.timeout(LONGEST):
                return await send(connection, LOOK)
        except TimeoutError:
            log.warning("watching took more than %g s; see: fairlane doctor", LONGEST)
        except Patience.passing:
            raise
        except (asyncpg.PostgresError, FairlaneError) as error:
            log.error("watching failed: %s; see: fairlane doctor", error)
        return []
