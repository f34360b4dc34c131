"""Jobs without a server: what an app enqueues is kept, and runs when the test says so."""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from fairlane.client.request import Request
from fairlane.errors import FairlaneError, JobIdTaken
from fairlane.job import Enqueued, JobStatus
from fairlane.testing.attempts import AnyTask, carry_out, carry_out_sync
from fairlane.testing.clock import InlineClock
from fairlane.testing.inline_job import InlineJob
from fairlane.testing.runs import Run, acquire_from

# Refuses what the database would refuse; None where somebody else runs it.
TaskOf = Callable[[Request], AnyTask | None]

MOST = 10_000


class NoEnd(FairlaneError):
    """Jobs make more jobs, or snooze, without end."""


class InlineJobs:
    """The jobs of one app inside `testing.inline`."""

    def __init__(self, task_of: TaskOf, connection: Any) -> None:
        self.enqueued: list[InlineJob] = []
        self.clock = InlineClock()
        self._task_of = task_of
        self._acquire = acquire_from(connection)
        self._taking = threading.Lock()

    async def run_all(self, *, advance: bool = False, most: int = MOST) -> list[Run]:
        """Run what is due, and what that enqueues, by priority, then age; answer the runs.

        What is scheduled waits until the clock has been moved; with `advance` the clock is moved
        to whatever comes next, until nothing is left. `most` runs are enough for any test.
        """
        return [
            job.ended(
                await carry_out(task, job.started(self.clock.now()), self._acquire),
                self.clock.now(),
            )
            for job, task in self._in_order(advance, most)
        ]

    def run_all_sync(self, *, advance: bool = False, most: int = MOST) -> list[Run]:
        """The same, for a test without an event loop; plain functions run in its own thread."""
        return [
            job.ended(
                carry_out_sync(task, job.started(self.clock.now()), self._acquire),
                self.clock.now(),
            )
            for job, task in self._in_order(advance, most)
        ]

    def take(self, requests: Sequence[Request]) -> list[Enqueued]:
        """Enqueue, all or none."""
        with self._taking:
            tasks = [self._task_of(request) for request in requests]
            self._refuse_taken_ids(requests)
            return [self._one(request, task) for request, task in zip(requests, tasks, strict=True)]

    def _one(self, request: Request, task: AnyTask | None) -> Enqueued:
        if twin := self._twin_of(request):
            return twin.answer(deduplicated=twin.id != request.id)
        job = InlineJob.of(request, task, self.clock.now())
        self.enqueued.append(job)
        return job.answer(deduplicated=False)

    def _twin_of(self, request: Request) -> InlineJob | None:
        """The job that a request turns out to be: the same id, or the live one with its key."""
        for job in self.enqueued:
            if job.id == request.id:
                return job
        if request.dedupe_key:
            for job in self.enqueued:
                key = job.tenant, job.options.get("dedupe_key")
                if job.status.is_live and key == (request.tenant, request.dedupe_key):
                    return job
        return None

    def _refuse_taken_ids(self, requests: Sequence[Request]) -> None:
        given = [request.id for request in requests if request.id is not None]
        if len(set(given)) < len(given):
            raise JobIdTaken("two items have the same job id; give each its own, or none")
        for request in requests:
            asked = request.tenant, request.definition_key
            if any(
                job.id == request.id and (job.tenant, job.key) != asked for job in self.enqueued
            ):
                raise JobIdTaken(
                    f"the job id {request.id} is taken by another job; send the same id only to "
                    "repeat the same request"
                )

    def _in_order(self, advance: bool, most: int) -> Iterator[tuple[InlineJob, AnyTask]]:
        for _ in range(most):
            if (job := self._next()) is None and advance:
                self._move_on()
                job = self._next()
            if job is None:
                return
            assert job.task is not None
            yield job, job.task
        if job := self._next():
            raise NoEnd(
                f'{most} runs and no end in sight, the next is "{job.key}"; does a job enqueue '
                "itself, or snooze for ever? If so many are meant, raise most="
            )

    def _next(self) -> InlineJob | None:
        now = self.clock.now()
        for job in self.enqueued:
            job.promote(now)
        queued = [job for job in self.enqueued if job.task and job.status is JobStatus.QUEUED]
        return min(queued, key=lambda job: job.priority, default=None)  # the first is the eldest

    def _move_on(self) -> None:
        waiting = [job for job in self.enqueued if job.task and job.status is JobStatus.SCHEDULED]
        if waiting:
            due = min(job.scheduled_for for job in waiting)
            self.clock.advance(max(due - self.clock.now(), timedelta(0)))
