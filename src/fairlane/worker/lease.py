"""The worker's lease, kept alive from a thread of its own.

Blocking code in a job stops the event loop; it must not stop the heartbeat, or the job would be
given to another worker while it still runs here. The thread also notices that the loop is blocked
and says by which line.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from uuid import UUID

import asyncpg

from fairlane.core import calls
from fairlane.core.connect import Record, connect, send
from fairlane.errors import FairlaneError, LeaseLost
from fairlane.worker.patience import PASSING

log = logging.getLogger("fairlane.worker")

BLOCKED_AFTER = 2.0  # seconds

# A beat that did not get through, for whatever reason, is sent again.
UNHEARD: tuple[type[BaseException], ...] = (*PASSING, asyncpg.PostgresError, FairlaneError)


class Lease:
    """Renews the lease of one worker until it is stopped or lost."""

    def __init__(
        self,
        url: str,
        worker: UUID,
        seconds: float,
        *,
        on_beat: Callable[[list[Record]], None],
        on_lost: Callable[[], None],
        kill: Callable[[], None],
    ) -> None:
        self.url = url
        self.worker = worker
        self.seconds = seconds
        self._on_beat = on_beat  # in the worker's loop
        self._on_lost = on_lost  # in the worker's loop
        self._kill = kill  # in this thread, at once: what can be killed
        self._main = asyncio.get_running_loop()
        self._main_thread = threading.get_ident()
        self._answered = self._asked = time.monotonic()
        self._complain_after = BLOCKED_AFTER
        self._draining = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._nudge: asyncio.Event | None = None
        self._over = False
        self._thread = threading.Thread(
            # In the worker's context: its lines say whose they are.
            target=copy_context().run,
            args=(self._run,),
            name="fairlane-lease",
            daemon=True,
        )

    def start(self) -> None:
        self._thread.start()

    def beat_now(self) -> None:
        """Somebody wants to be told of a cancel before the next beat is due."""
        if self._loop is not None and self._nudge is not None:
            with suppress(RuntimeError):  # its loop has ended
                self._loop.call_soon_threadsafe(self._nudge.set)

    def drain(self) -> None:
        self._draining = True
        self.beat_now()

    def let_go(self) -> None:
        """The worker signs off: what a beat finds from now on is no news."""
        self._over = True

    async def stop(self) -> None:
        self._over = True
        self.beat_now()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat_on())
        except Exception:
            # Without a heartbeat the jobs will be somebody else's: better to stop them now.
            log.exception("worker %s: its heartbeat failed, stopping its jobs", self.worker)
            self._lost()

    async def _beat_on(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._nudge = asyncio.Event()
        connection: asyncpg.Connection | None = None
        renewed = time.monotonic()
        due = renewed
        try:
            while not self._over:
                self._watch_loop()
                now = time.monotonic()
                if now >= due or self._nudge.is_set():
                    self._nudge.clear()
                    # Connecting included: a half-open network must not eat the time to stop in.
                    patience = min(self.seconds / 3, renewed + self.seconds * 0.8 - now)
                    try:
                        async with asyncio.timeout(max(patience, 0.1)):
                            if connection is None:
                                connection = await connect(self.url, name="fairlane heartbeat")
                            rows = await send(
                                connection, calls.beat(self.worker, draining=self._draining)
                            )
                    except LeaseLost:
                        self._refused()
                        return
                    except UNHEARD as error:
                        log.warning("worker %s: no heartbeat: %s", self.worker, error)
                        if connection is not None:
                            connection.terminate()
                            connection = None
                        due = now + min(1.0, self.seconds / 10)
                    else:
                        # Counted from when it was sent: the database may have read its clock then.
                        renewed = now
                        due = now + self.seconds / 3
                        self._tell(self._on_beat, rows)
                # Before others may take the jobs, not after.
                if time.monotonic() - renewed > self.seconds * 0.8:
                    log.error(
                        "worker %s: no heartbeat got through for %.0f s, stopping its jobs",
                        self.worker,
                        time.monotonic() - renewed,
                    )
                    self._lost()
                    return
                await self._wait(min(due - time.monotonic(), 0.5))
        finally:
            if connection is not None:
                connection.terminate()

    async def _wait(self, seconds: float) -> None:
        assert self._nudge is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.01)):
                await self._nudge.wait()

    def _refused(self) -> None:
        if not self._over:  # the worker has not signed off itself
            log.error("worker %s: the lease is lost, stopping its jobs", self.worker)
            self._lost()

    def _lost(self) -> None:
        self._kill()
        self._tell(self._on_lost)

    def _tell(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._main.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the worker's loop has ended
            self._over = True

    def _watch_loop(self) -> None:
        """Ask the worker's loop for a sign of life; name the line that keeps it from giving one."""
        now = time.monotonic()
        if self._answered >= self._asked:
            self._asked = now
            self._complain_after = BLOCKED_AFTER
            self._tell(self._answer)
        elif now - self._asked > self._complain_after:
            self._complain_after *= 2
            frame = sys._current_frames().get(self._main_thread)
            where = traceback.extract_stack(frame)[-1] if frame else None
            log.warning(
                "the event loop has been blocked for %.0f s%s; use a plain function, "
                'or isolation="process", for work that blocks',
                now - self._asked,
                f" by {where.filename}:{where.lineno} in {where.name}" if where else "",
            )

    def _answer(self) -> None:
        self._answered = time.monotonic()
