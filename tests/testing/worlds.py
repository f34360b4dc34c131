"""The same questions to jobs without a server and to jobs in a database."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from fairlane import Fairlane, testing
from fairlane.testing import Clock, Database, InlineJobs


@dataclass(frozen=True)
class Seen:
    """What a test may know of a job in either world."""

    status: str
    attempts: int
    result: Any
    error: str | None


class World(Protocol):
    clock: Clock

    def run(self) -> None: ...
    def job(self, job_id: UUID) -> Seen: ...
    def due(self, job_id: UUID) -> float:
        """Seconds from now."""
        ...


class Inline:
    def __init__(self, jobs: InlineJobs) -> None:
        self.jobs = jobs
        self.clock: Clock = jobs.clock

    def run(self) -> None:
        self.jobs.run_all_sync()

    def job(self, job_id: UUID) -> Seen:
        job = self._job(job_id)
        error = job.error["message"] if job.error else None
        return Seen(job.status, job.attempts, job.result, error)

    def due(self, job_id: UUID) -> float:
        return (self._job(job_id).scheduled_for - self.clock.now()).total_seconds()

    def _job(self, job_id: UUID) -> testing.InlineJob:
        return next(job for job in self.jobs.enqueued if job.id == job_id)


class InDatabase:
    def __init__(self, db: Database, app: Fairlane) -> None:
        self.db = db
        self.app = app
        self.clock = db.clock

    def run(self) -> None:
        # One slot, so that the order is that of the lane.
        self.db.drain_sync(self.app, queues={"critical": 1, "default": 1, "bulk": 1})

    def job(self, job_id: UUID) -> Seen:
        job = self.app.get_sync(job_id)
        error = job.last_error["message"] if job.last_error else None
        return Seen(job.status, job.attempt_count, job.result, error)

    def due(self, job_id: UUID) -> float:
        return (self.app.get_sync(job_id).scheduled_for - self.clock.now()).total_seconds()


@contextmanager
def inline(app: Fairlane) -> Iterator[World]:
    with testing.inline(app) as jobs:
        yield Inline(jobs)


@contextmanager
def in_database(app: Fairlane) -> Iterator[World]:
    with testing.fresh_database() as db, db.use(app):
        db.tenant("acme")
        db.tenant("globex")
        yield InDatabase(db, app)


WORLDS = (inline, in_database)
