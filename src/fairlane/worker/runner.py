"""Runs attempts within their deadlines and hands each outcome to the finisher."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from fairlane.connection import LOOP
from fairlane.context import JobContext
from fairlane.errors import LeaseLost
from fairlane.executors.base import Executor, failed
from fairlane.observe import trace, tracing
from fairlane.observe.about import WORKER, about
from fairlane.outcome import Bounced, Canceled, Failed, Outcome, Reused, Snoozed
from fairlane.running import RUNNING
from fairlane.worker.attempt import KILL_AFTER, Attempt, Stop
from fairlane.worker.deadlines import Deadlines
from fairlane.worker.judging import judged

if TYPE_CHECKING:
    from fairlane.observe.spans import Processing

log = logging.getLogger("fairlane.worker")


class Runner:
    """Holds what runs; tells it to stop when its time is up or somebody says so."""

    def __init__(
        self,
        executor_for: Callable[[Attempt], Executor | None],
        context_for: Callable[[Attempt], JobContext],
        prepare: Callable[[Attempt], Awaitable[Outcome | None]],
        ended: Callable[[Attempt, Outcome | None], None],
        check: Callable[[Attempt, Outcome], Outcome] = lambda _, outcome: outcome,
    ) -> None:
        self.running: set[Attempt] = set()
        self._executor_for = executor_for
        self._context_for = context_for
        self._prepare = prepare
        self._check = check
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        LOOP.set(self._loop)  # every task inherits it, and so does the thread of a plain function
        self._deadlines = Deadlines(self._loop, partial(self.stop, why=Stop.TIMEOUT))

    def start(self, attempt: Attempt) -> None:
        self.running.add(attempt)
        self._deadlines.add(attempt)
        attempt.task = self._loop.create_task(self._run(attempt))

    def stop(self, attempt: Attempt, why: Stop) -> None:
        """Ask the attempt to stop. What cannot be stopped is at least told."""
        if attempt.stop is None and attempt.task is not None:
            attempt.stop = why
            log.info("%s is told to stop: %s", attempt, why.value, extra=about(attempt))
            if attempt.open is not None:
                attempt.ctx().ask_to_stop()
            if patience := _patience(attempt):
                self._loop.call_later(patience, self._break_off, attempt)
            else:
                attempt.task.cancel()
            self._loop.call_later(attempt.grace, self._insist, attempt)

    def _break_off(self, attempt: Attempt) -> None:
        if attempt in self.running and attempt.task is not None:
            attempt.task.cancel()

    def _insist(self, attempt: Attempt) -> None:
        """A coroutine that swallows its cancellation cannot be killed: it keeps its slot until it
        ends, or until the database parks its job as stuck."""
        if attempt in self.running and attempt.task is not None:
            log.error(
                '%s does not stop: its slot stays taken. Use isolation="process" for work that '
                "must be stopped",
                attempt,
                extra=about(attempt),
            )
            attempt.task.cancel()
            self._loop.call_later(KILL_AFTER, self._insist, attempt)

    def stop_all(self, why: Stop) -> None:
        for attempt in list(self.running):
            self.stop(attempt, why)

    async def _run(self, attempt: Attempt) -> None:
        outcome: Outcome | None
        # Whoever logs for it, the user's own code too, names it and shows none of its secrets.
        RUNNING.set(attempt)
        attempt.open = self._context_for
        span = self._traced(attempt)
        log.debug("%s starts", attempt)
        try:
            outcome = await self._outcome(attempt)
        except asyncio.CancelledError:
            outcome = None if attempt.stop else self._outcome_of_stop(attempt)
        except LeaseLost as error:
            log.warning("%s", error)
            outcome = None
        except BaseException as error:  # the executor's fault, or SystemExit from a task
            outcome = failed(error)
        finally:
            self._deadlines.remove(attempt)
            self.running.discard(attempt)
            # They hold the attempt, which holds them: the garbage collector should have no work.
            context, attempt.context, attempt.open = attempt.context, None, None
            RUNNING.set(None)
        if attempt.stop is not None and not isinstance(outcome, Reused):
            outcome = self._outcome_after_stop(attempt, outcome)
        if context is not None:
            if outcome is not None and (items := context.last_items()) is not None:
                outcome = judged(items, outcome)
            context.end()
        if outcome is not None:
            outcome = self._checked(attempt, outcome)
        if isinstance(outcome, Failed):
            log.warning(
                "%s failed: %s", attempt, outcome.error.get("message"), extra=about(attempt)
            )
            log.debug("%s", outcome.error.get("traceback", ""), extra=about(attempt))
        elif log.isEnabledFor(logging.DEBUG):
            log.debug("%s ended: %s", attempt, type(outcome).__name__, extra=about(attempt))
        if span is not None:
            outcome = _with_trace(outcome, span.trace)
            span.end(outcome)
        self._ended(attempt, outcome)

    def _traced(self, attempt: Attempt) -> "Processing | None":
        """Its span, where traces are on; and what it enqueues goes on in its trace."""
        span = None
        if (spans := tracing.spans()) is not None:
            span = spans.process(attempt, WORKER.get())
            attempt.own_trace = span.trace
        if (carried := attempt.passed_on) is not None:
            trace.CURRENT.set(carried)
        return span

    def _checked(self, attempt: Attempt, outcome: Outcome) -> Outcome:
        try:
            return self._check(attempt, outcome)
        except Exception as error:
            return failed(error)

    async def _outcome(self, attempt: Attempt) -> Outcome:
        if not attempt.is_ready and (ended := await self._prepare(attempt)) is not None:
            return ended
        executor = self._executor_for(attempt)
        if executor is None:
            log.warning("%s: this worker does not know the task, another may", attempt)
            return Bounced()
        return await executor.run(attempt)

    def _outcome_after_stop(self, attempt: Attempt, outcome: Outcome | None) -> Outcome | None:
        """It was told to stop and then it ended: perhaps it was done, perhaps it broke off because
        it was told to. Who can say? To call it a success might lose half of the work, so the stop
        counts, unless the task spoke clearly: again later, or no more."""
        spoke = isinstance(outcome, Snoozed) or (isinstance(outcome, Failed) and outcome.final)
        if spoke and attempt.stop in (Stop.TIMEOUT, Stop.SHUTDOWN):
            return outcome
        stopped = self._outcome_of_stop(attempt)
        if isinstance(stopped, Failed) and isinstance(outcome, Failed) and outcome is not stopped:
            raised = f"{outcome.error.get('type')}: {outcome.error.get('message')}"
            told = {**outcome.error, **stopped.error}
            told["message"] = f"{stopped.error['message']}; told to stop, it raised {raised}"
            return replace(stopped, error=told)
        return stopped

    def _outcome_of_stop(self, attempt: Attempt) -> Outcome | None:
        match attempt.stop:
            case Stop.TIMEOUT:
                return Failed(
                    {
                        "type": "Timeout",
                        "message": f"ran longer than its timeout of {attempt.timeout:g} s",
                    },
                    outcome="timeout",
                )
            case Stop.CANCEL:
                return Canceled()
            case Stop.SHUTDOWN | Stop.LEASE_LOST:
                return None
            case None:  # the task cancelled itself
                return Failed({"type": "CancelledError", "message": "the task cancelled itself"})
            case _:
                assert_never(attempt.stop)


def _patience(attempt: Attempt) -> float:
    """How long it has to stop by itself. Without its lease it has no time: another may run."""
    if attempt.context is None or attempt.stop is Stop.LEASE_LOST:
        return 0
    return attempt.context.canceled.patience(attempt.grace)


def _with_trace(outcome: Outcome | None, carried: str | None) -> Outcome | None:
    """A failed attempt keeps the trace it is told in; the next one is linked to it."""
    if not isinstance(outcome, Failed) or carried is None:
        return outcome
    return replace(outcome, error={**outcome.error, "trace": carried})
