"""What one may ask of a job that is there: look, cancel, retry, and settle dead letters."""

import asyncio
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
from fairlane.errors import JobNotFound, RequestInvalid
from fairlane.ids import parse_id
from fairlane.job import Job, JobStatus

T = TypeVar("T")
JobId = UUID | str

# How often a job that is waited for is looked at, in seconds.
QUICKEST, SLOWEST = 0.05, 1.0


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
        rows = await self._look(calls.job(parse_id(job_id), tenant))
        if not rows:
            raise JobNotFound(
                f"job {job_id} is not there: the id is wrong, or its retention is over"
            )
        return Job.of(dict(rows[0]))

    async def jobs(
        self,
        *,
        tenant: str | None = None,
        status: JobStatus | str | None = None,
        definition_key: str | None = None,
        queue: str | None = None,
        before: JobId | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """Jobs, newest first; the id of the last one is `before` of the next page."""
        if limit < 1:
            raise RequestInvalid(f"limit is {limit}; it is 1 or more")
        wanted = None if status is None else _status(status)
        behind = None if before is None else parse_id(before)
        ids = await self._look(calls.newest(tenant, wanted, queue, definition_key, behind, limit))
        rows = await self._look(calls.jobs([row["id"] for row in ids])) if ids else []
        return [Job.of(dict(row)) for row in rows]

    async def wait_for(
        self,
        job_id: JobId,
        *,
        tenant: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - its sync twin has no other way
    ) -> Job:
        """The job once it has ended or is parked. TimeoutError if that takes longer."""
        pause = QUICKEST
        async with asyncio.timeout(timeout):
            while (job := await self.get(job_id, tenant=tenant)).status.is_live:
                await asyncio.sleep(pause)
                pause = min(pause * 1.3, SLOWEST)
            return job

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

    def jobs_sync(
        self,
        *,
        tenant: str | None = None,
        status: JobStatus | str | None = None,
        definition_key: str | None = None,
        queue: str | None = None,
        before: JobId | None = None,
        limit: int = 50,
    ) -> list[Job]:
        return self.wait(
            self.jobs(
                tenant=tenant,
                status=status,
                definition_key=definition_key,
                queue=queue,
                before=before,
                limit=limit,
            )
        )

    def wait_for_sync(
        self, job_id: JobId, *, tenant: str | None = None, timeout: float | None = None
    ) -> Job:
        return self.wait(self.wait_for(job_id, tenant=tenant, timeout=timeout))

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

    async def _look(self, call: Call) -> list[Record]:
        try:
            return await self.ask(call)
        except OutcomeUnknown:
            return await self.ask(call)  # looking twice does no harm

    async def _one(self, call: Call) -> Any:
        return (await self.ask(call))[0][0]


def _status(status: JobStatus | str) -> JobStatus:
    try:
        return JobStatus(status)
    except ValueError:
        raise RequestInvalid(
            f'status "{status}" is unknown; there are: {", ".join(JobStatus)}'
        ) from None
