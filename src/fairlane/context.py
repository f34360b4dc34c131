"""JobContext: what a running task may ask and tell."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    import asyncpg

    from fairlane.worker.attempt import Attempt

    Acquire = Callable[[], Any]

log = logging.getLogger("fairlane.job")


class Flag:
    """False until it is raised; `await` it, or ask it from a thread."""

    def __init__(self) -> None:
        self._raised = threading.Event()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def __bool__(self) -> bool:
        return self._raised.is_set()

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        event = asyncio.Event()
        self._waiters.append((asyncio.get_running_loop(), event))
        if self._raised.is_set():
            return
        await event.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Block a thread until the flag is raised, or for `timeout` seconds."""
        return self._raised.wait(timeout)

    def raise_(self) -> None:
        self._raised.set()
        for loop, event in self._waiters:
            loop.call_soon_threadsafe(event.set)


class JobContext:
    """One attempt as its task sees it."""

    __slots__ = (
        "_acquire",
        "attempt",
        "canceled",
        "correlation_id",
        "deadline",
        "job_id",
        "payload",
        "tenant",
        "tenant_id",
    )

    def __init__(
        self,
        *,
        tenant: str,
        job_id: UUID,
        attempt: int = 1,
        payload: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        deadline: datetime | None = None,
        tenant_id: UUID | None = None,
        acquire: "Acquire | None" = None,
    ) -> None:
        self.tenant = tenant
        self.tenant_id = tenant_id
        self.job_id = job_id
        self.attempt = attempt
        self.payload = payload or {}
        self.correlation_id = correlation_id
        self.deadline = deadline
        self.canceled = Flag()
        self._acquire = acquire

    @classmethod
    def of(cls, attempt: "Attempt", acquire: "Acquire") -> "JobContext":
        return cls(
            tenant=attempt.tenant,
            tenant_id=attempt.tenant_id,
            job_id=attempt.job_id,
            attempt=attempt.number,
            payload=attempt.payload,
            correlation_id=attempt.correlation_id,
            deadline=attempt.started_at + timedelta(seconds=attempt.timeout),
            acquire=acquire,
        )

    def log(self, message: str, *, level: str = "info", **fields: Any) -> None:
        """A line about this job; it carries the job, the tenant and the attempt."""
        log.log(
            logging.getLevelNamesMapping()[level.upper()],
            "%s",
            message,
            extra={
                "job_id": str(self.job_id),
                "tenant": self.tenant,
                "attempt": self.attempt,
                "correlation_id": self.correlation_id,
                "fields": fields,
            },
        )

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["asyncpg.Connection"]:
        """A transaction that carries the tenant, so that row-level security can hold to it.

        Policies of the application's own tables compare with
        `current_setting('fairlane.tenant', true)` or `'fairlane.tenant_id'`.
        """
        if self._acquire is None:
            raise RuntimeError("this context has no database")
        async with self._acquire() as connection, connection.transaction():
            await connection.execute(
                "select set_config('fairlane.tenant', $1, true),"
                " set_config('fairlane.tenant_id', $2, true)",
                self.tenant,
                str(self.tenant_id),
            )
            yield connection

    def ask_to_stop(self) -> None:
        """Raise `canceled`: the job was canceled, or its time is up."""
        self.canceled.raise_()

    # Over the border of a process, for isolation="process".

    def as_order(self) -> dict[str, Any]:
        return {
            "tenant": self.tenant,
            "tenant_id": str(self.tenant_id),
            "job_id": str(self.job_id),
            "attempt": self.attempt,
            "payload": self.payload,
            "correlation_id": self.correlation_id,
            "deadline": self.deadline and self.deadline.isoformat(),
        }

    @classmethod
    def from_order(cls, order: dict[str, Any]) -> "JobContext":
        import asyncpg

        @asynccontextmanager
        async def acquire() -> AsyncIterator[asyncpg.Connection]:
            connection = await asyncpg.connect(order["database_url"])
            try:
                yield connection
            finally:
                await connection.close()

        return cls(
            tenant=order["tenant"],
            tenant_id=UUID(order["tenant_id"]),
            job_id=UUID(order["job_id"]),
            attempt=order["attempt"],
            payload=order["payload"],
            correlation_id=order["correlation_id"],
            deadline=order["deadline"] and datetime.fromisoformat(order["deadline"]),
            acquire=acquire,
        )
