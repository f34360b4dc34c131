"""What one may ask of a job that is there: look, cancel, retry, and settle dead letters."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar
from uuid import UUID

from fairlane.client.aio import OutcomeUnknown
from fairlane.client.edited import replayed_with
from fairlane.config import Settings
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import JobNotFound
from fairlane.ids import parse_id
from fairlane.job import Job, JobStatus

T = TypeVar("T")
JobId = UUID | str


class Verbs(ABC):
    """An id is a UUID, its text, or the short form. With `tenant`, another's job is not there."""

    @abstractmethod
    async def ask(self, call: Call) -> list[Record]:
        """Send a call through a connection of our own."""

    @abstractmethod
    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine for code without an event loop."""

    @property
    @abstractmethod
    def settings(self) -> Settings: ...

    async def get(self, job_id: JobId, *, tenant: str | None = None) -> Job:
        call = calls.job(parse_id(job_id), tenant)
        try:
            rows = await self.ask(call)
        except OutcomeUnknown:
            rows = await self.ask(call)  # looking twice does no harm
        if not rows:
            raise JobNotFound(
                f"job {job_id} is not there: the id is wrong, or its retention is over"
            )
        return Job.of(dict(rows[0]))

    async def cancel(
        self, job_id: JobId, reason: str | None = None, *, tenant: str | None = None
    ) -> JobStatus:
        """Cancel a job that waits; ask a running one to stop, and answer `running`."""
        return JobStatus(await self._one(calls.cancel(parse_id(job_id), reason, tenant)))

    async def retry(self, job_id: JobId, *, tenant: str | None = None) -> UUID:
        """Run a finished job again, as a new job: its id."""
        return UUID(str(await self._one(calls.retry(parse_id(job_id), tenant))))

    async def replay(
        self,
        job_id: JobId,
        *,
        payload: Mapping[str, Any] | None = None,
        notes: str | None = None,
        tenant: str | None = None,
    ) -> JobStatus:
        """Put a dead letter back in its lane, with another payload if one is given."""
        found = parse_id(job_id)
        inputs_hash = None
        if payload is not None:
            payload, inputs_hash = await replayed_with(
                self.ask, found, payload, tenant, self.settings.payload_limit
            )
        return JobStatus(await self._one(calls.replay(found, payload, notes, tenant, inputs_hash)))

    async def resolve(
        self, job_id: JobId, *, notes: str | None = None, tenant: str | None = None
    ) -> None:
        """Settle a dead letter: somebody has dealt with it."""
        await self._one(calls.resolve(parse_id(job_id), notes, tenant))

    async def ignore(
        self, job_id: JobId, *, notes: str | None = None, tenant: str | None = None
    ) -> None:
        """Settle a dead letter: it does not matter."""
        await self._one(calls.ignore(parse_id(job_id), notes, tenant))

    async def explain(self, job_id: JobId, *, tenant: str | None = None) -> dict[str, Any]:
        """Why the job is where it is: `reason`, `detail`, the limit that holds it, an estimate."""
        found: dict[str, Any] = json.loads(await self._one(calls.explain(parse_id(job_id), tenant)))
        return found

    # The same, for code without an event loop.

    def explain_sync(self, job_id: JobId, *, tenant: str | None = None) -> dict[str, Any]:
        return self.wait(self.explain(job_id, tenant=tenant))

    def get_sync(self, job_id: JobId, *, tenant: str | None = None) -> Job:
        return self.wait(self.get(job_id, tenant=tenant))

    def cancel_sync(
        self, job_id: JobId, reason: str | None = None, *, tenant: str | None = None
    ) -> JobStatus:
        return self.wait(self.cancel(job_id, reason, tenant=tenant))

    def retry_sync(self, job_id: JobId, *, tenant: str | None = None) -> UUID:
        return self.wait(self.retry(job_id, tenant=tenant))

    def replay_sync(
        self,
        job_id: JobId,
        *,
        payload: Mapping[str, Any] | None = None,
        notes: str | None = None,
        tenant: str | None = None,
    ) -> JobStatus:
        return self.wait(self.replay(job_id, payload=payload, notes=notes, tenant=tenant))

    def resolve_sync(
        self, job_id: JobId, *, notes: str | None = None, tenant: str | None = None
    ) -> None:
        self.wait(self.resolve(job_id, notes=notes, tenant=tenant))

    def ignore_sync(
        self, job_id: JobId, *, notes: str | None = None, tenant: str | None = None
    ) -> None:
        self.wait(self.ignore(job_id, notes=notes, tenant=tenant))

    async def _one(self, call: Call) -> Any:
        return (await self.ask(call))[0][0]
