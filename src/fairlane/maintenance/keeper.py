"""Keeps house: rescues, promotes, sweeps, prunes. Any process may; one at a time does."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from uuid import UUID

import asyncpg

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.maintenance")

EVERY = 0.75  # seconds: a lost lease, or a lost leader, is noticed within this
TIDY_EVERY = 600.0
FIGURES_EVERY = 15.0
FLOORS_EVERY = 15.0


class Keeper:
    """Tries to lead, and does the leader's work while it does."""

    def __init__(self, holder: UUID, send: Callable[[Call], Awaitable[list[Record]]]) -> None:
        self.holder = holder
        self.leads = False
        self._send = send
        self._tidied = -TIDY_EVERY
        self._figured = -FIGURES_EVERY
        self._lowered = -FLOORS_EVERY

    async def run(self) -> None:
        patience = Patience()
        while True:
            try:
                more = await self.tick()
                patience.reset()
            except patience.passing as error:
                self.leads = False
                log.info("not keeping house, the database is away: %s", error)
                await patience.wait()
                continue
            except asyncpg.PostgresError as error:
                # Whatever is wrong with the house, the jobs that run have nothing to do with it.
                log.error("keeping house failed: %s; see: fairlane doctor", error)
                await patience.wait()
                continue
            if not more:
                await asyncio.sleep(EVERY)

    async def tick(self) -> bool:
        """One round; true when there is more to do at once."""
        row = (await self._send(calls.housekeep(self.holder)))[0]
        if row["leads"] and not self.leads:
            log.info("this process keeps house now")
        self.leads = row["leads"]
        if not self.leads:
            return False
        if row["rescued"]:
            log.warning("%d jobs of lost workers went back to their lanes", row["rescued"])
        if row["stuck"]:
            log.error("%d stuck jobs were parked with the dead letters", row["stuck"])
        if time.monotonic() - self._tidied >= TIDY_EVERY:
            self._tidied = time.monotonic()
            await self.tidy()
        if time.monotonic() - self._figured >= FIGURES_EVERY:
            self._figured = time.monotonic()
            await self.figures()
        if time.monotonic() - self._lowered >= FLOORS_EVERY:
            self._lowered = time.monotonic()
            await self._send(Call("select fairlane.lower_floors()"))
        return bool(row["rescued"] or row["stuck"] or row["promoted"] >= 500)

    async def tidy(self) -> None:
        """The work of every ten minutes, unless a scheduler does it: its schedules say what."""
        for row in await self._send(Call("select chore, did::text from fairlane.tidy()")):
            log.info("%s: %s", row["chore"], row["did"])

    async def figures(self) -> None:
        """The work of every 15 seconds: samples, and counts of what ended."""
        try:
            await self._send(Call("select * from fairlane.keep_figures()"))
        except asyncpg.PostgresError as error:
            # Figures can wait, rescues cannot.
            log.error("no figures were taken: %s; see: fairlane doctor", error)
