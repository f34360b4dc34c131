"""The scheduler: any number may run, one at a time does the work, and any may die at any moment."""

import asyncio
import contextlib
import logging
import time
from functools import partial
from uuid import UUID, uuid4

from fairlane.core import calls, connect
from fairlane.core.connect import is_pooled, send
from fairlane.core.listen import listen
from fairlane.maintenance.watcher import Watcher
from fairlane.metrics.scheduling import Scheduling
from fairlane.scheduler.dispatcher import Dispatcher
from fairlane.scheduler.firer import Firer
from fairlane.scheduler.house import House
from fairlane.scheduler.operations import Operations
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.scheduler")

EVERY = 1.0  # seconds: what nobody rings for, and a leader that died, is noticed within this
HURRY = 1.0  # seconds for events before schedules have their turn again
HOUSE_EVERY = 5.0
CHANNEL = "fairlane_events"
# A batch costs as much as dozens of events. Where they come in a stream, a moment's wait makes one
# batch of many; one that comes alone never waits.
STREAM = 10
GATHER = 0.1


class Scheduler:
    """Tries to lead; while it does, dispatches events, fires schedules, carries on operations."""

    def __init__(self, url: str, metrics: Scheduling | None = None) -> None:
        self.url = url
        self.id: UUID = uuid4()
        self.leads = False
        self.house = House()
        self._stopping = asyncio.Event()
        self._rung = asyncio.Event()
        metrics = metrics or Scheduling()
        metrics.leads = lambda: self.leads
        self._dispatcher = Dispatcher(metrics)
        self._firer = Firer(metrics)
        self._operations = Operations(lambda: self.leads)
        self._wait = EVERY
        self._gathers = False
        self._second: connect.Connection | None = None

    def stop(self) -> None:
        """Finish what is under way, and hand over."""
        self._stopping.set()
        self._rung.set()

    async def run(self) -> None:
        # Where no worker is left, somebody must be there to say so.
        connection = partial(connect.connected, self.url, name="fairlane watcher")
        beside = [
            asyncio.create_task(self._listen()),
            asyncio.create_task(self._keep_house()),
            asyncio.create_task(self._operations.run(self.url)),
            asyncio.create_task(Watcher(connection, lambda: self.leads).run()),
        ]
        patience = Patience()
        try:
            while not self._stopping.is_set():
                try:
                    await self._connected(patience)
                except patience.passing as error:
                    log.info("not scheduling, the database is away: %s", error)
                except Exception as error:
                    # Whatever it is, others may do better, and so may we a little later.
                    log.exception("scheduling failed: %s; see: fairlane doctor", error)
                if not self._stopping.is_set():
                    self.leads = False
                    await patience.wait()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    async def _connected(self, patience: Patience) -> None:
        async with (
            connect.connected(self.url, name="fairlane scheduler") as connection,
            connect.connected(self.url, name="fairlane scheduler") as self._second,
        ):
            while not self._stopping.is_set():
                more = await self.tick(connection)
                patience.reset()
                if not more:
                    await self._pause()
            await send(connection, calls.stop_scheduling(self.id))

    async def tick(self, connection: connect.Connection) -> bool:
        """One round; true when there is more to do at once."""
        self._rung.clear()
        [row] = await send(connection, calls.schedule(self.id, EVERY * 2))
        if row["leads"] != self.leads:
            log.info("this process schedules now" if row["leads"] else "another schedules now")
        self.leads = row["leads"]
        self._wait = EVERY
        self._gathers = False
        if not self.leads:
            return False
        more = False
        if row["due"]:
            more = await self._firer.tick(connection) > 0
        if row["events"]:
            more |= await self._dispatch(connection)
        if not more and row["next_seconds"] is not None:
            self._wait = min(EVERY, max(row["next_seconds"], 0.01))
        return more

    async def _dispatch(self, connection: connect.Connection) -> bool:
        """Dispatch events for a while; whether there are more."""
        done = await self._dispatcher.tick(connection)
        if not self._dispatcher.has_more:
            self._gathers = done >= STREAM
            return done > 0 and not self._gathers
        # While the database writes one batch, the next is made: neither waits for the other.
        end = time.monotonic() + HURRY
        ways = [connection, *([self._second] if self._second is not None else [])]
        tasks = [asyncio.create_task(self._hurry(each, end)) for each in ways]
        try:
            return any(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _hurry(self, connection: connect.Connection, end: float) -> bool:
        while time.monotonic() < end:
            if not await self._dispatcher.tick(connection):
                return False
        return True

    async def _pause(self) -> None:
        if self._gathers:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), min(GATHER, self._wait))
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._wait):
                await self._rung.wait()

    async def _keep_house(self) -> None:
        """While this process leads. Whatever is wrong with the house, the jobs have nothing to do
        with it."""
        patience = Patience()
        while True:
            await asyncio.sleep(HOUSE_EVERY)
            try:
                if self.leads:
                    async with connect.connected(self.url, name="fairlane house") as connection:
                        while await self.house.tick(connection) and self.leads:
                            pass
                patience.reset()
            except patience.passing as error:
                log.info("not keeping house, the database is away: %s", error)
                await patience.wait()
            except Exception as error:
                log.exception("keeping house failed: %s; see: fairlane doctor", error)
                await patience.wait()

    async def _listen(self) -> None:
        """Hear the doorbell. It is a hint only: whoever does not hear it polls."""
        patience = Patience()
        while True:
            try:
                if await is_pooled(self.url):
                    log.info("a pooler is in the way, which passes no notifications on: polling")
                    return
                channels = {CHANNEL: self._on_event}
                await listen(self.url, channels, name="fairlane listener", ready=patience.reset)
            except patience.passing as error:
                log.info("not listening, polling only: %s", error)
            await patience.wait()

    def _on_event(self, _: str) -> None:
        self._rung.set()
        self._operations.rung.set()
