"""JobContext: what a running task may ask and tell."""

import asyncio
import logging
import math
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import UUID

from fairlane.observe.about import Attempted, Named, about
from fairlane.redact import SPEAKING
from fairlane.saying.items import Item, Items
from fairlane.saying.ledger import Ledger, State

if TYPE_CHECKING:
    import asyncpg

    from fairlane.redact import Redactor
    from fairlane.worker.attempt import Attempt

    Acquire = Callable[[], Any]

log = logging.getLogger("fairlane.job")

_LEVELS = {name: name for name in ("debug", "info", "warning", "error")} | {"warn": "warning"}


class Sink(Protocol):
    """Where a job's words go. Its methods are called from any thread and never wait."""

    def line(self, level: str, message: str, fields: dict[str, Any]) -> None: ...
    def phase(self, name: str) -> None: ...
    def progress(self, progress: dict[str, Any]) -> None: ...
    def item(self, name: str, state: State, error: str | None, again: bool) -> None: ...
    def output(self, stream: str, tail: str, total: int) -> None: ...


class Silence:
    """Where the words of an attempt that is over go."""

    def _nothing(self, *_: Any) -> None:
        pass

    line = phase = progress = item = output = _nothing


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
        waiter = (asyncio.get_running_loop(), event)
        self._waiters.append(waiter)
        try:
            if not self._raised.is_set():
                await event.wait()
        finally:
            self._waiters.remove(waiter)

    def wait(self, timeout: float | None = None) -> bool:
        """Block a thread until the flag is raised, or for `timeout` seconds."""
        return self._raised.wait(timeout)

    def raise_(self) -> None:
        self._raised.set()
        for loop, event in list(self._waiters):
            with suppress(RuntimeError):  # that loop has ended, and who waited in it
                loop.call_soon_threadsafe(event.set)


class JobContext:
    """One attempt as its task sees it."""

    __slots__ = (
        "_acquire",
        "_ignored",
        "_named",
        "_phase",
        "_scrub",
        "_sink",
        "_told",
        "attempt",
        "canceled",
        "correlation_id",
        "deadline",
        "job_id",
        "ledger",
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
        sink: Sink | None = None,
        scrub: "Callable[[], Redactor] | None" = None,
        named: Attempted | None = None,
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
        self._sink = sink
        self._named = named
        self._scrub = scrub  # makes what takes this job's secrets out of a line
        self._phase: str | None = None
        self._told = False  # how far this phase has come
        self._ignored: set[str] = set()
        self.ledger = Ledger(self._moved, scrub)

    @classmethod
    def of(
        cls,
        attempt: "Attempt",
        acquire: "Acquire",
        sink: Sink | None = None,
        scrub: "Callable[[], Redactor] | None" = None,
    ) -> "JobContext":
        return cls(
            tenant=attempt.tenant,
            tenant_id=attempt.tenant_id,
            job_id=attempt.job_id,
            attempt=attempt.number,
            payload=attempt.payload,
            correlation_id=attempt.correlation_id,
            deadline=attempt.started_at + timedelta(seconds=attempt.timeout),
            acquire=acquire,
            sink=sink,
            scrub=scrub,
            named=attempt,
        )

    def log(self, message: str, *, level: str = "info", **fields: Any) -> None:
        """A line about this job; it carries the job, the tenant and the attempt."""
        number = logging.getLevelNamesMapping()[level.upper()]
        if self._sink is not None:
            self._sink.line(_LEVELS.get(level.lower(), "error"), str(message), fields)
        # A thread that the task has started does not know for whom it speaks.
        before = SPEAKING.set(self._scrub)
        try:
            log.log(
                number,
                "%s",
                message,
                extra={**about(self._named or self._itself()), "fields": fields},
            )
        finally:
            SPEAKING.reset(before)

    def _itself(self) -> Attempted:
        return Named(self.job_id, self.tenant, "", self.attempt, self.correlation_id)

    def hear(self, level: str, message: str, fields: dict[str, Any]) -> None:
        """A line that the task has logged in another way, and that has gone its own way too."""
        if self._sink is not None:
            self._sink.line(level, message, fields)

    def phase(self, name: str, **data: Any) -> None:
        """Say what the job does now; `data` stands in its log. The progress of the phase before
        is over."""
        if not _is_name(name):
            self._ignore("phase", f"the phase {_shown(name)} is ignored: a phase is named by text")
        elif self._sink is not None:
            if self._told and name != self._phase:
                self._sink.progress({})
                self._told = False
            self._phase = name
            self._sink.phase(name)
            self._sink.line("info", f"phase: {name}", data)

    def progress(
        self,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        *,
        current: float | None = None,
        **data: Any,
    ) -> None:
        """Say how far the job has come (`current` is another word for `done`); the last word
        counts. What makes no sense is ignored, and the job's log says so."""
        done = current if done is None else done
        if wrong := wrong_progress(done, total):
            told = f"{_shown(done)} of {_shown(total)}"
            self._ignore("progress", f"progress {told} is ignored: {wrong}")
            return
        said = {"done": done, "total": total, "message": message, **data}
        if self._sink is not None:
            self._told = True
            self._sink.progress({name: value for name, value in said.items() if value is not None})

    def item(self, name: str) -> Item:
        """One of the named parts of this job: `with ctx.item(name):`, or by `start`, `complete`
        and `fail`. What raises in the block is the item's failure and goes no further."""
        return Item(self.ledger, name)

    def items(self, names: Iterable[str] | None = None) -> Items:
        """Several of them, all in progress from now on; without names, all that there are."""
        return Items(self.ledger, names)

    def _moved(self, name: str, state: State, error: str | None, again: bool) -> None:
        if self._sink is not None:
            self._sink.item(name, state, error, again)

    def _ignore(self, what: str, why: str) -> None:
        """Telling never fails the task; once is enough to learn of it."""
        if what not in self._ignored:
            self._ignored.add(what)
            self.log(why, level="warning")

    def output(self, stream: Literal["stdout", "stderr"], tail: str, total: int) -> None:
        """The end of what a command has written so far, and how many bytes that was in all."""
        if self._sink is not None:
            self._sink.output(stream, tail, total)

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

    def end(self) -> None:
        """The attempt is over. A thread that outlived the task may speak on; nobody listens, or its
        outcome would wait for last words that never come."""
        self.ledger.end()
        if self._sink is not None:
            self._sink = Silence()

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

    def pass_on(self, kind: str, words: list[Any]) -> None:
        """What the task said over there."""
        if kind == "item":
            # Counted here as well: what they came to is judged on this side.
            self.ledger.move(*words)
        elif self._sink is not None:
            getattr(self._sink, kind)(*words)

    @classmethod
    def from_order(cls, order: dict[str, Any], sink: Sink | None = None) -> "JobContext":
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
            sink=sink,
            named=Named.in_order(order),
        )


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and bool(name.strip())


def _shown(value: Any) -> str:
    try:
        return repr(value)[:100]
    except Exception:  # its own __repr__ raises, or a number without end
        return f"(a {type(value).__name__})"


def wrong_progress(done: Any, total: Any) -> str | None:
    """Why it cannot be how far a job has come."""
    for number in (done, total):
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float):
            return "give numbers"
        if number < 0 or (isinstance(number, float) and not math.isfinite(number)):
            return "give numbers of 0 or more"
    if done is not None and total is not None and done > total:
        return "it is over its total"
    return None
