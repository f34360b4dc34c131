"""Carries what running jobs say of themselves to the database, in batches."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import LeaseLost
from fairlane.executors.base import storable
from fairlane.executors.cuts import beginning, ending
from fairlane.observe.about import about
from fairlane.worker.attempt import Attempt
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.worker")

EVERY = 0.5  # seconds between two reports, so that a chatty job costs two statements a second
MOST_LINES = 1_000  # of one job that wait for the database; the rest is counted
LONGEST_LINE = 8_192  # as it is kept; scrubbed before it is cut, or half a secret would stay
LONGEST_SAID = 262_144
MOST_SAID = 4_194_304  # characters of one job that wait
AT_ONCE = 100  # jobs in one report
TAIL = 65_536  # characters of output that are kept


class Scrub(Protocol):
    """Takes the secrets of one job out of what it says."""

    def text(self, text: str) -> str: ...
    def value(self, value: Any) -> Any: ...


@dataclass
class Note:
    """What one attempt has said since the last report."""

    phase: str | None = None
    progress: dict[str, Any] | None = None
    lines: list[dict[str, Any]] = field(default_factory=list)
    said: int = 0  # characters
    dropped: int = 0
    output: dict[str, tuple[str, int]] = field(default_factory=dict)


class Reporter:
    """Jobs speak from any thread and never wait; what they said is written soon after."""

    def __init__(
        self,
        worker: UUID,
        send: Callable[[Call], Awaitable[list[Record]]],
        scrub_for: Callable[[Attempt], Scrub],
    ) -> None:
        self.worker = worker
        self._send = send
        self._scrub_for = scrub_for
        self._notes: dict[Attempt, Note] = {}
        self._travelling: set[Attempt] = set()  # what they said is on its way
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._some = asyncio.Event()
        self._writing = asyncio.Lock()

    # From any thread.

    def line(self, attempt: Attempt, level: str, message: str, fields: dict[str, Any]) -> None:
        with self._noting(attempt) as note:
            message = message[:LONGEST_SAID]
            if len(note.lines) >= MOST_LINES or note.said + len(message) > MOST_SAID:
                note.dropped += 1
                return
            note.said += len(message)
            line = {"at": datetime.now(UTC), "level": level, "message": message}
            note.lines.append(line | ({"fields": fields} if fields else {}))

    def phase(self, attempt: Attempt, name: str) -> None:
        with self._noting(attempt) as note:
            note.phase = name[:LONGEST_LINE]

    def progress(self, attempt: Attempt, progress: dict[str, Any]) -> None:
        with self._noting(attempt) as note:
            note.progress = progress

    def output(self, attempt: Attempt, stream: str, tail: str, total: int) -> None:
        with self._noting(attempt) as note:
            note.output[stream] = (tail, total)

    def _noting(self, attempt: Attempt) -> "_Noting":
        return _Noting(self, attempt)

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._some.set)
        except RuntimeError:
            log.debug("a job spoke after its worker had ended")

    # In the worker's loop.

    def has(self, attempt: Attempt) -> bool:
        """Whether it has said something that is not known to be written."""
        return attempt in self._notes or attempt in self._travelling

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            await self.flush()
            await asyncio.sleep(EVERY)

    async def flush(self, attempt: Attempt | None = None) -> None:
        """Write what waits, or what waits of one attempt, which is about to end."""
        async with self._writing:
            while batch := self._take(attempt):
                self._travelling.update(each for each, _ in batch)
                try:
                    await self._write([self._report(*one) for one in batch])
                finally:
                    self._travelling.difference_update(each for each, _ in batch)

    def _take(self, attempt: Attempt | None) -> list[tuple[Attempt, Note]]:
        with self._lock:
            chosen = list(self._notes)[:AT_ONCE] if attempt is None else [attempt]
            return [(each, self._notes.pop(each)) for each in chosen if each in self._notes]

    async def _write(self, reports: list[dict[str, Any]]) -> None:
        patience = Patience()
        while True:
            try:
                await self._send(calls.report(self.worker, reports))
                return
            except LeaseLost:
                return
            except patience.passing as error:
                log.warning("reports wait for the database: %s", error)
                await patience.wait()
            except Exception as error:
                # What a job says must not end it, nor silence the others.
                if len(reports) == 1:
                    log.error("what job %s said was refused: %s", reports[0]["job_id"], error)
                    return
                for one in reports:
                    await self._write([one])
                return

    def _report(self, attempt: Attempt, note: Note) -> dict[str, Any]:
        try:
            return self._readable(attempt, note)
        except Exception as error:  # it said what nobody can read
            log.warning(
                "%s: what it said cannot be kept: %s",
                attempt,
                type(error).__name__,
                extra=about(attempt),
            )
            return {"job_id": attempt.job_id, "attempt": attempt.attempt}

    def _readable(self, attempt: Attempt, note: Note) -> dict[str, Any]:
        scrub = self._scrub_for(attempt)
        lines = [
            {
                "at": line["at"].isoformat(),
                "level": line["level"],
                "message": storable(beginning(line["message"], LONGEST_LINE, scrub.text)),
                "fields": _fields(line.get("fields"), scrub),
            }
            for line in note.lines
        ]
        if note.dropped:
            more = f"{note.dropped} more lines were said faster than they could be kept"
            lines.append({"at": None, "level": "warning", "message": more, "fields": None})
        return {
            "job_id": attempt.job_id,
            "attempt": attempt.attempt,
            "phase": None
            if note.phase is None
            else storable(beginning(note.phase, 200, scrub.text)),
            "progress": _fields(note.progress, scrub),
            "lines": lines,
            "output": {
                stream: {"tail": storable(ending(str(tail), TAIL, scrub.text)), "bytes": int(total)}
                for stream, (tail, total) in note.output.items()
                if stream in ("stdout", "stderr")
            },
        }


@dataclass(frozen=True, slots=True)
class Voice:
    """One attempt's way to the reporter."""

    reporter: Reporter
    attempt: Attempt

    def line(self, level: str, message: str, fields: dict[str, Any]) -> None:
        self.reporter.line(self.attempt, level, message, fields)

    def phase(self, name: str) -> None:
        self.reporter.phase(self.attempt, name)

    def progress(self, progress: dict[str, Any]) -> None:
        self.reporter.progress(self.attempt, progress)

    def output(self, stream: str, tail: str, total: int) -> None:
        self.reporter.output(self.attempt, stream, tail, total)


class _Noting:
    """A note under the lock; leaving it rings."""

    def __init__(self, reporter: Reporter, attempt: Attempt) -> None:
        self._reporter = reporter
        self._attempt = attempt

    def __enter__(self) -> Note:
        self._reporter._lock.acquire()
        return self._reporter._notes.setdefault(self._attempt, Note())

    def __exit__(self, *_: object) -> None:
        self._reporter._lock.release()
        self._reporter._wake()


def _fields(value: Any, scrub: Scrub) -> Any:
    """JSON of what a job said, whatever it was: what cannot be kept is told as text."""
    if value is None:
        return None
    try:
        json.check(value, "what a job says")
        return scrub.value(value)
    except Exception:
        return {"unreadable": storable(scrub.text(_shown(value))[:2_000])}


def _shown(value: Any) -> str:
    try:
        return repr(value)[:LONGEST_SAID]
    except Exception:  # its own __repr__ raises
        return f"a {type(value).__name__}"
