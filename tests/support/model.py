"""What the core should do, in plain Python: no locks, no counters, no lanes, a record a job."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from support.core import Lease

MAX_ATTEMPTS = 2
DELAYS = (5, 9)
LIVE = ("scheduled", "queued", "running")
UNCOUNTED_QUEUE = "critical"
OF_PLAN = 10


@dataclass
class ModelJob:
    id: UUID
    tenant: str
    kind: str
    queue: str
    key: str | None
    dedupe: str | None
    priority: int
    due: datetime
    state: str = "queued"
    attempt: int = 0
    forgiven: int = 0
    lost: int = 0
    worker: UUID | None = None
    asked: bool = False
    replays: int = 0

    @property
    def counted(self) -> int:
        return self.attempt - self.forgiven

    @property
    def line(self) -> tuple[object, ...]:
        """Jobs alike in this are served in order."""
        return self.tenant, self.queue, self.kind, self.key

    @property
    def place_in_line(self) -> tuple[int, UUID]:
        return self.priority, self.id

    def shown(self) -> tuple[object, ...]:
        return self.state, self.attempt, self.forgiven, self.lost, self.worker, self.replays


@dataclass
class Limits:
    """Of a definition."""

    max_running: int | None = None
    max_running_per_tenant: int | None = None
    starts_per_minute: int | None = None


@dataclass
class Model:
    now: datetime
    jobs: dict[UUID, ModelJob] = field(default_factory=dict)
    leases_end: dict[UUID, datetime] = field(default_factory=dict)
    tenant_limits: dict[str, int | None] = field(default_factory=dict)
    kind_limits: dict[str, Limits] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    starts: dict[str, list[datetime]] = field(default_factory=dict)

    # What is the case ------------------------------------------------------

    def in_state(self, *states: str) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.state in states]

    def live_with(self, tenant: str, dedupe: str | None) -> ModelJob | None:
        return next(
            (
                job
                for job in self.in_state(*LIVE)
                if dedupe is not None and (job.tenant, job.dedupe) == (tenant, dedupe)
            ),
            None,
        )

    def is_alive(self, worker: UUID) -> bool:
        return self.leases_end[worker] > self.now

    def holds(self, lease: Lease) -> bool:
        job = self.jobs[lease.job_id]
        return (
            job.state == "running"
            and (job.worker, job.attempt) == (lease.worker, lease.attempt)
            and self.is_alive(lease.worker)
        )

    def room(self, job: ModelJob) -> int:
        """How many more jobs like this one may start now."""
        rules = self.kind_limits[job.kind]
        alike = self.in_state("running")
        rooms = [
            OF_PLAN * 10,
            _left(rules.max_running, (j.kind == job.kind for j in alike)),
            _left(
                rules.max_running_per_tenant,
                ((j.kind, j.tenant) == (job.kind, job.tenant) for j in alike),
            ),
            _left(
                rules.starts_per_minute,
                (
                    int(start.timestamp()) >= int(self.now.timestamp()) - 60
                    for start in self.starts.get(job.kind, [])
                ),
            ),
        ]
        if job.queue != UNCOUNTED_QUEUE:
            limit = self.tenant_limits.get(job.tenant)
            rooms.append(
                _left(
                    OF_PLAN if limit is None else limit,
                    (j.tenant == job.tenant and j.queue != UNCOUNTED_QUEUE for j in alike),
                )
            )
        if job.key is not None:
            rooms.append(_left(1, ((j.tenant, j.key) == (job.tenant, job.key) for j in alike)))
        return min(rooms)

    def may_start(self, job: ModelJob) -> bool:
        return job.state == "queued" and job.tenant not in self.paused and self.room(job) > 0

    # What happens ----------------------------------------------------------

    def start(self, job: ModelJob, worker: UUID) -> None:
        job.state, job.worker = "running", worker
        job.attempt += 1
        self.starts.setdefault(job.kind, []).append(self.now)

    def end(self, job: ModelJob, state: str) -> str:
        job.state = state
        return state

    def put_back(self, job: ModelJob, seconds: float, *, forgive: bool) -> str:
        job.due = self.now + timedelta(seconds=seconds)
        job.worker = None
        job.forgiven += forgive
        return self.end(job, "scheduled" if seconds > 0 else "queued")

    def fail(self, job: ModelJob, *, final: bool = False, lost: bool = False) -> str:
        job.lost += lost
        if job.asked:
            return self.end(job, "canceled")
        if final:
            return self.end(job, "failed")
        if job.counted >= MAX_ATTEMPTS:
            return self.end(job, "dead_letter")
        first_loss = lost and job.lost == 1
        return self.put_back(job, 0 if first_loss else DELAYS[job.counted - 1], forgive=False)

    def rescue(self) -> None:
        for job in self.in_state("running"):
            assert job.worker is not None
            if not self.is_alive(job.worker):
                self.fail(job, lost=True)

    def promote(self) -> None:
        for job in self.in_state("scheduled"):
            if job.due <= self.now:
                job.state = "queued"

    def replay(self, job: ModelJob) -> None:
        job.state, job.worker, job.asked = "queued", None, False
        job.forgiven, job.lost = job.attempt, 0
        job.replays += 1


def _left(limit: int | None, taken: Iterable[bool]) -> int:
    return OF_PLAN * 10 if limit is None else limit - sum(taken)
