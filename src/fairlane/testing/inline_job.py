"""A job that lives in this process alone, by the rules of the database."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from fairlane.client.request import Request
from fairlane.core import json
from fairlane.ids import uuid7
from fairlane.job import Enqueued, JobStatus
from fairlane.testing.attempts import AnyTask
from fairlane.testing.queues import Policy, policy_of
from fairlane.testing.runs import Run, RunOutcome
from fairlane.worker.attempt import Attempt

OPTIONS = (
    "queue",
    "priority",
    "scheduled_for",
    "dedupe_key",
    "concurrency_key",
    "correlation_id",
    "max_attempts",
)


@dataclass(kw_only=True, eq=False, repr=False)
class InlineJob:
    """What was enqueued, and how far it has come."""

    id: UUID
    key: str
    version: str | None
    tenant: str
    payload: dict[str, Any]
    options: dict[str, Any]  # those that were given, as they were given
    queue: str
    priority: int
    scheduled_for: datetime
    max_attempts: int
    status: JobStatus
    runs: list[Run] = field(default_factory=list)
    task: AnyTask | None  # None: somebody else runs it
    policy: Policy

    @classmethod
    def of(cls, request: Request, task: AnyTask | None, now: datetime) -> "InlineJob":
        assert request.body is not None
        definition = task.definition() if task else {}
        queue = request.queue or definition.get("queue", "default")
        policy = policy_of(queue, definition)
        given = {name: getattr(request, name) for name in OPTIONS}
        due = request.scheduled_for or now
        job = cls(
            id=UUID(str(request.id)) if request.id else uuid7(),
            key=request.definition_key,
            version=request.version,
            tenant=request.tenant,
            payload=json.loads(request.body),
            options={name: value for name, value in given.items() if value is not None},
            queue=queue,
            priority=100 if request.priority is None else request.priority,
            scheduled_for=now,
            max_attempts=request.max_attempts or policy.max_attempts,
            status=JobStatus.QUEUED,
            task=task,
            policy=policy,
        )
        job._wait_until(due if isinstance(due, datetime) else now + due, now)
        return job

    def __repr__(self) -> str:
        return f'<job "{self.key}" for {self.tenant}, {self.status}: {self.payload}>'

    @property
    def attempts(self) -> int:
        """How many count."""
        return sum(run.outcome is not RunOutcome.SNOOZED for run in self.runs)

    @property
    def result(self) -> Any:
        return self.runs[-1].result if self.runs else None

    @property
    def error(self) -> dict[str, Any] | None:
        """Of the last attempt that failed."""
        return next((run.error for run in reversed(self.runs) if run.error), None)

    def answer(self, *, deduplicated: bool) -> Enqueued:
        return Enqueued(
            id=self.id,
            tenant=self.tenant,
            definition_key=self.key,
            queue=self.queue,
            status=self.status,
            scheduled_for=self.scheduled_for,
            deduplicated=deduplicated,
        )

    def started(self, now: datetime) -> Attempt:
        self.status = JobStatus.RUNNING
        return Attempt(
            job_id=self.id,
            attempt=len(self.runs) + 1,
            number=self.attempts + 1,
            # The same for a tenant each time.
            tenant_id=uuid5(NAMESPACE_DNS, self.tenant),
            tenant=self.tenant,
            key=self.key,
            version=self.version or "1",
            queue=self.queue,
            # A copy: what the task does to its own must not show in ours.
            payload=json.loads(json.dumps(self.payload)),
            correlation_id=self.options.get("correlation_id"),
            timeout=self.policy.timeout,
            started_at=now,
        )

    def ended(self, run: Run, now: datetime) -> Run:
        self.runs.append(run)
        match run.outcome:
            case RunOutcome.SUCCEEDED:
                self.status = JobStatus.SUCCEEDED
            case RunOutcome.SUCCEEDED_WITH_ERRORS:
                self.status = JobStatus.SUCCEEDED_WITH_ERRORS
            case RunOutcome.FAILED:
                self.status = JobStatus.FAILED
            case RunOutcome.SNOOZED:
                self._wait_until(now + (run.delay or timedelta(0)), now)
            case RunOutcome.RAISED | RunOutcome.TIMEOUT if self.attempts < self.max_attempts:
                delay = self.policy.retry_delay(self.attempts)
                self._wait_until(now + timedelta(seconds=delay), now)
            case RunOutcome.RAISED | RunOutcome.TIMEOUT:
                parked = self.task is None or self.task.options.dead_letter
                self.status = JobStatus.DEAD_LETTER if parked else JobStatus.FAILED
        return run

    def promote(self, now: datetime) -> None:
        """Its time may have come."""
        if self.status is JobStatus.SCHEDULED and self.scheduled_for <= now:
            self.status = JobStatus.QUEUED

    def _wait_until(self, due: datetime, now: datetime) -> None:
        self.scheduled_for = due.astimezone(UTC)
        self.status = JobStatus.SCHEDULED if due > now else JobStatus.QUEUED
