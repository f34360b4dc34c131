"""Reports outcomes in batches: while one report travels, the next fills up."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import assert_never
from uuid import UUID

import asyncpg

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import FairlaneError, LeaseLost
from fairlane.observe.about import about
from fairlane.outcome import Bounced, Canceled, Done, Failed, Outcome, Reused, Snoozed
from fairlane.worker.attempt import Attempt
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.worker")

Send = Callable[[Call], Awaitable[list[Record]]]
BATCH = 500
BEHIND = 4 * BATCH  # reports that wait: no new jobs until some are written


class Finisher:
    """Writes down what became of attempts; what it is given is written or the lease is lost."""

    def __init__(self, worker: UUID, send: Send, released: Callable[[int], None]) -> None:
        self.worker = worker
        self._send = send
        self._released = released  # told how many reports reached the database
        self._waiting: list[tuple[Attempt, Outcome]] = []
        self._writing: list[list[tuple[Attempt, Outcome]]] = []
        self._some = asyncio.Event()
        self._full = asyncio.Event()  # a whole batch waits
        self._idle = asyncio.Event()
        self._idle.set()

    def record(self, attempt: Attempt, outcome: Outcome) -> None:
        self._waiting.append((attempt, outcome))
        self._idle.clear()
        self._some.set()
        if len(self._waiting) >= BATCH:
            self._full.set()

    @property
    def is_behind(self) -> bool:
        return len(self._waiting) > BEHIND

    def holds(self) -> set[tuple[UUID, int]]:
        """The attempts whose outcomes are not known to be written."""
        return {attempt.fence for batch in (self._waiting, *self._writing) for attempt, _ in batch}

    async def written(self) -> None:
        """Wait until everything recorded so far is in the database."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            await self._write_some()

    async def help(self) -> None:
        """A second pair of hands: a report waits for its turn at the share and for the disk, and
        the next can be prepared meanwhile. Not for a few outcomes: they go together."""
        while True:
            await self._full.wait()
            await self._write_some()

    async def _write_some(self) -> None:
        batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        self._note_what_waits()
        self._writing.append(batch)
        await self._write(batch)
        self._writing.remove(batch)
        self._released(len(batch))
        if not self._waiting and not self._writing:
            self._idle.set()

    def _note_what_waits(self) -> None:
        if not self._waiting:
            self._some.clear()
        if len(self._waiting) < BATCH:
            self._full.clear()

    async def _write(self, batch: list[tuple[Attempt, Outcome]]) -> None:
        done: list[tuple[Attempt, Done]] = []
        failed: list[tuple[Attempt, Failed]] = []
        others: list[tuple[Attempt, Call]] = []
        for attempt, outcome in batch:
            if isinstance(outcome, Done) and not outcome.errors:
                done.append((attempt, outcome))
            elif isinstance(outcome, Failed):
                failed.append((attempt, outcome))
            else:
                others.append((attempt, self._call(attempt, outcome)))
        if done:
            await self._finish(done)
        if failed:
            await self._fail(failed)
        for attempt, call in others:
            try:
                await self._persist(call)
            except LeaseLost:
                log.warning(
                    "%s: the lease was lost, its outcome is not recorded",
                    attempt,
                    extra=about(attempt),
                )
            except asyncpg.PostgresError as error:
                await self._refused(attempt, error)

    async def _finish(self, done: list[tuple[Attempt, Done]]) -> None:
        ids = [attempt.job_id for attempt, _ in done]
        attempts = [attempt.attempt for attempt, _ in done]
        results = [outcome.result for _, outcome in done]
        try:
            rows, sure = await self._persist(calls.finish(self.worker, ids, attempts, results))
        except LeaseLost:
            log.warning("the lease was lost: %d outcomes are not recorded", len(done))
            return
        except asyncpg.PostgresError as error:
            # One result that the database cannot keep must not hold up the others.
            if len(done) == 1:
                await self._refused(done[0][0], error)
            else:
                for one in done:
                    await self._finish([one])
            return
        # A report that was sent twice, because the first answer was lost, finds nothing to do.
        if len(rows) < len(done) and sure:
            kept = {row[0] for row in rows}
            for attempt, _ in done:
                if attempt.job_id not in kept:
                    _not_ours(attempt)

    async def _fail(self, failed: list[tuple[Attempt, Failed]]) -> None:
        told = [
            {
                "job_id": attempt.job_id,
                "attempt": attempt.attempt,
                "error": outcome.error,
                "final": outcome.final,
                "retry_after": outcome.retry_after,
                "outcome": outcome.outcome,
            }
            for attempt, outcome in failed
        ]
        try:
            rows, sure = await self._persist(calls.fail_many(self.worker, told))
        except LeaseLost:
            log.warning("the lease was lost: %d failures are not recorded", len(failed))
            return
        except (asyncpg.PostgresError, FairlaneError, TypeError, ValueError) as error:
            if len(failed) == 1:
                await self._refused(failed[0][0], error)
            else:
                for one in failed:
                    await self._fail([one])
            return
        if len(rows) < len(failed) and sure:
            kept = {row[0] for row in rows}
            for attempt, _ in failed:
                if attempt.job_id not in kept:
                    _not_ours(attempt)

    async def _refused(self, attempt: Attempt, error: Exception) -> None:
        """The database cannot keep what the attempt came to: then it has failed, and says why."""
        log.error("%s: its outcome could not be recorded: %s", attempt, error, extra=about(attempt))
        told = {"type": "OutcomeRefused", "message": f"the database refused its outcome: {error}"}
        with suppress(LeaseLost, asyncpg.PostgresError):
            await self._persist(calls.fail(self.worker, attempt.job_id, attempt.attempt, told))

    def _call(self, attempt: Attempt, outcome: Outcome) -> Call:
        key = (self.worker, attempt.job_id, attempt.attempt)
        match outcome:
            case Done(result, errors):
                return calls.finish(
                    self.worker, [attempt.job_id], [attempt.attempt], [result], [errors]
                )
            case Snoozed(seconds):
                return calls.snooze(*key, seconds)
            case Canceled():
                return calls.canceled(*key)
            case Bounced():
                return calls.bounce(*key)
            case Failed() | Reused():
                raise AssertionError(f"{outcome} is not reported on its own")
            case _:
                assert_never(outcome)

    async def _persist(self, call: Call) -> tuple[list[Record], bool]:
        """Send until it is through; the second part tells whether it was sent only once."""
        patience = Patience()
        sure = True
        while True:
            try:
                return await self._send(call), sure
            except patience.passing as error:
                sure = False
                log.warning("outcomes wait for the database: %s", error)
                await patience.wait()


def _not_ours(attempt: Attempt) -> None:
    log.warning(
        "%s: no longer this worker's, its outcome is not recorded", attempt, extra=about(attempt)
    )
