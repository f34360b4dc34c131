"""JobContext: what a running task may ask and tell."""

import asyncio
import logging
import math
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import UUID

from fairlane.connection import Acquire, TenantConnection
from fairlane.observe.about import Named, about
from fairlane.redact import SPEAKING
from fairlane.running import Attempted
from fairlane.saying.items import Item, Items
from fairlane.saying.ledger import Ledger, State

if TYPE_CHECKING:
    import asyncpg

    from fairlane.redact import Redactor
    from fairlane.worker.attempt import Attempt


log = logging.getLogger("fairlane.job")

_LEVELS = {name: name for name in ("debug", "info", "warning", "error")} | {"warn": "warning"}


# Most jobs have no items: a ledger is made with the first one, by whichever thread begins it.
MAKING = threading.Lock()
OVER = Ledger(lambda *_: None)
OVER.end()


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
    """False until it is raised; `await` it, or ask it from a thread.

    There is one for each attempt, and next to nobody waits for it: what waiting needs is made by
    who waits. Whoever comes while it is raised is in the list before it looks.
    """

    __slots__ = ("_asked", "_raised", "_waiters")

    def __init__(self) -> None:
        self._raised = False
        self._asked = False
        self._waiters: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        self._asked = True
        return self._raised

    def patience(self, grace: float) -> float:
        """How long a coroutine may still run once the flag is raised: some of its grace if it has
        looked at the flag, for then it means to stop by itself."""
        return grace / 2 if self._asked else 0

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        event = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, event.set)
        with self._waiting(wake):
            if not self._raised:
                await event.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Block a thread until the flag is raised, or for `timeout` seconds."""
        event = threading.Event()
        with self._waiting(event.set):
            if not self._raised:
                event.wait(timeout)
        return self._raised

    @contextmanager
    def _waiting(self, wake: Callable[[], object]) -> Iterator[None]:
        self._asked = True
        self._waiters.append(wake)
        try:
            yield
        finally:
            self._waiters.remove(wake)

    def raise_(self) -> None:
        self._raised = True
        for wake in list(self._waiters):
            with suppress(RuntimeError):  # that loop has ended, and who waited in it
                wake()


class JobContext:
    """One attempt as its task sees it."""

    __slots__ = (
        "_acquire",
        "_deadline",
        "_ignored",
        "_ledger",
        "_named",
        "_phase",
        "_scrub",
        "_sink",
        "_told",
        "attempt",
        "canceled",
        "correlation_id",
        "fence",
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
        acquire: Acquire | None = None,
        sink: Sink | None = None,
        scrub: "Callable[[], Redactor] | None" = None,
        named: Attempted | None = None,
        fence: int | None = None,
    ) -> None:
        self.tenant = tenant
        self.tenant_id = tenant_id
        self.job_id = job_id
        self.attempt = attempt
        # Rises with every start of this job, also where an attempt is not counted: who writes
        # elsewhere hands it on, and lets nobody with a lower one write after it.
        self.fence = attempt if fence is None else fence
        self.payload = payload or {}
        self.correlation_id = correlation_id
        self._deadline = deadline
        self.canceled = Flag()
        self._acquire = acquire
        self._sink = sink
        self._named = named
        self._scrub = scrub  # makes what takes this job's secrets out of a line
        self._phase: str | None = None
        self._told = False  # how far this phase has come
        self._ignored: set[str] | None = None  # what was said and made no sense
        self._ledger: Ledger | None = None

    @classmethod
    def of(
        cls, attempt: "Attempt", acquire: Acquire | None = None, sink: Sink | None = None
    ) -> "JobContext":
        return cls(
            tenant=attempt.tenant,
            tenant_id=attempt.tenant_id,
            job_id=attempt.job_id,
            attempt=attempt.number,
            payload=attempt.payload,
            correlation_id=attempt.correlation_id,
            acquire=acquire,
            sink=sink,
            scrub=attempt.redactor,
            named=attempt,
            fence=attempt.attempt,
        )

    @property
    def deadline(self) -> datetime | None:
        """When its time is up."""
        return self._deadline or getattr(self._named, "deadline", None)

    @property
    def ledger(self) -> Ledger:
        with MAKING:
            if self._ledger is None:
                self._ledger = Ledger(self._moved, self._scrub)
            return self._ledger

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
        self._ignored = self._ignored or set()
        if what not in self._ignored:
            self._ignored.add(what)
            self.log(why, level="warning")

    def output(self, stream: Literal["stdout", "stderr"], tail: str, total: int) -> None:
        """The end of what a command has written so far, and how many bytes that was in all."""
        if self._sink is not None:
            self._sink.output(stream, tail, total)

    def connection(self) -> TenantConnection:
        """A transaction that carries the tenant, so that row-level security can hold to it: `async
        with` in a coroutine, `with` in a plain function.

        Policies of the application's own tables compare with
        `current_setting('fairlane.tenant', true)` or `'fairlane.tenant_id'`.
        """
        if self._acquire is None:
            raise RuntimeError("this context has no database")
        return TenantConnection(self._acquire, self.tenant, self.tenant_id)

    def ask_to_stop(self) -> None:
        """Raise `canceled`: the job was canceled, or its time is up."""
        self.canceled.raise_()

    def end(self) -> None:
        """The attempt is over. A thread that outlived the task may speak on; nobody listens, or its
        outcome would wait for last words that never come."""
        if (items := self.last_items()) is not None:
            items.end()
        if self._sink is not None:
            self._sink = Silence()

    def last_items(self) -> Ledger | None:
        """Where its items stand, if it had any. Who begins the first one from now on is late."""
        with MAKING:
            if self._ledger is None:
                self._ledger = OVER
        return None if self._ledger is OVER else self._ledger

    # Over the border of a process, for isolation="process".

    def as_order(self) -> dict[str, Any]:
        return {
            "tenant": self.tenant,
            "tenant_id": str(self.tenant_id),
            "job_id": str(self.job_id),
            "attempt": self.attempt,
            "fence": self.fence,
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
        from fairlane.core.connect import connect

        @asynccontextmanager
        async def acquire() -> AsyncIterator["asyncpg.Connection"]:
            url = order["database_url"]
            connection = await connect(url, name="fairlane task", for_others=True)
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
            fence=order["fence"],
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
