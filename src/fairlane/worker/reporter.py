"""Carries what running jobs say of themselves to the database, in batches."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import LeaseLost
from fairlane.executors.base import storable
from fairlane.executors.cuts import beginning, ending
from fairlane.observe.about import about
from fairlane.saying.ledger import LONGEST_ERROR, LONGEST_NAME
from fairlane.worker.attempt import Attempt
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.worker")

EVERY = 0.5  # seconds between two reports, so that a chatty job costs two statements a second
MOST_LINES = 1_000  # of one job that wait for the database; the rest is counted
LONGEST_LINE = 8_192  # as it is kept; scrubbed before it is cut, or half a secret would stay
LONGEST_SAID = 262_144
MOST_SAID = 4_194_304  # characters of one job that wait
AT_ONCE = 100  # jobs in one report
SLOWER = 4.0
TAIL = 65_536  # characters of output that are kept
MESSAGE = 1_000  # characters of a progress's message
LARGEST = 16_384  # characters of JSON beside a line or a progress
PLAIN = ("done", "total", "message")  # stays, however much else was said
PAUSE = 0.05  # seconds
TRIES = 5  # where somebody else holds the job's row for a moment


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
    items: dict[str, dict[str, Any]] = field(default_factory=dict)  # where each stands now
    tries: int = 0


class Reporter:
    """Jobs speak from any thread and never wait; what they said is written soon after."""

    def __init__(self, worker: UUID, send: Callable[[Call], Awaitable[list[Record]]]) -> None:
        self.worker = worker
        self._send = send
        self._notes: dict[Attempt, Note] = {}
        self._travelling: set[Attempt] = set()  # what they said is on its way
        self._ending: dict[Attempt, None] = {}  # they wait for their last words to be written
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._some = asyncio.Event()
        self._writing = asyncio.Lock()

    # From any thread.

    def line(self, attempt: Attempt, level: str, message: str, fields: dict[str, Any]) -> None:
        with self._noting(attempt) as note:
            message = message[:LONGEST_SAID]
            said = len(message) + sum(len(v) for v in fields.values() if isinstance(v, str))
            if len(note.lines) >= MOST_LINES or note.said + said > MOST_SAID:
                note.dropped += 1
                return
            note.said += said
            line = {"at": datetime.now(UTC), "level": level, "message": message}
            note.lines.append(line | ({"fields": fields} if fields else {}))

    def phase(self, attempt: Attempt, name: str) -> None:
        with self._noting(attempt) as note:
            note.phase = name[:LONGEST_LINE]

    def progress(self, attempt: Attempt, progress: dict[str, Any]) -> None:
        with self._noting(attempt) as note:
            note.progress = progress

    def item(self, attempt: Attempt, name: str, state: str, error: str | None, again: bool) -> None:
        with self._noting(attempt) as note:
            again = again or (name in note.items and note.items[name]["again"])
            note.items[name] = {"name": name, "state": state, "error": error, "again": again}

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
            speaking = len(self._notes)
            await self.flush()
            # Where hundreds speak at once each is heard less often: working comes before telling.
            await asyncio.sleep(EVERY * min(max(1.0, speaking / AT_ONCE), SLOWER))

    async def flush(self, attempt: Attempt | None = None) -> None:
        """Write what waits, or what waits of one attempt, which is about to end."""
        if attempt is not None:
            await self._flush_ending(attempt)
            return
        async with self._writing:
            # Each once: whoever never stops talking is heard again the next time.
            with self._lock:
                waiting = list(self._notes)
            for first in range(0, len(waiting), AT_ONCE):
                await self._pass_on(waiting[first : first + AT_ONCE])

    async def _flush_ending(self, attempt: Attempt) -> None:
        """Those that wait to end go together: the first takes along what the others have said."""
        self._ending[attempt] = None
        try:
            async with self._writing:
                for _ in range(TRIES + 1):
                    if attempt not in self._notes:
                        break
                    others = (each for each in self._ending if each is not attempt)
                    await self._pass_on([attempt, *islice(others, AT_ONCE - 1)])
        finally:
            del self._ending[attempt]

    async def _pass_on(self, attempts: list[Attempt]) -> None:
        with self._lock:
            batch = [(each, self._notes.pop(each)) for each in attempts if each in self._notes]
        self._travelling.update(each for each, _ in batch)
        try:
            kept = await self._write([self._report(*one) for one in batch]) if batch else set()
            if self._keep_items([one for one in batch if one[0].job_id not in kept]):
                # Its row is locked, as by a cancel: that takes no time.
                await asyncio.sleep(PAUSE)
        finally:
            self._travelling.difference_update(each for each, _ in batch)

    def _keep_items(self, missed: list[tuple[Attempt, Note]]) -> bool:
        """A line may get lost; where an item stands may not, as long as the attempt holds."""
        kept = [(attempt, note) for attempt, note in missed if note.items and note.tries < TRIES]
        with self._lock:
            for attempt, note in kept:
                newer = self._notes.setdefault(attempt, Note())
                for name, move in note.items.items():
                    known = newer.items.setdefault(name, move)
                    known["again"] = known["again"] or move["again"]
                newer.tries = note.tries + 1
        if kept:
            self._some.set()
        return bool(kept)

    async def _write(self, reports: list[dict[str, Any]]) -> set[UUID]:
        """The jobs whose words were kept; of a lost lease nobody asks again."""
        patience = Patience()
        everyone = {report["job_id"] for report in reports}
        while True:
            try:
                return {row[0] for row in await self._send(calls.report(self.worker, reports))}
            except LeaseLost:
                return everyone
            except patience.passing as error:
                log.warning("reports wait for the database: %s", error)
                await patience.wait()
            except Exception as error:
                # What a job says must not end it, nor silence the others.
                if len(reports) == 1:
                    log.error("what job %s said was refused: %s", reports[0]["job_id"], error)
                    return everyone
                return set().union(*[await self._write([one]) for one in reports])

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
        scrub = attempt.redactor()
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
        said: dict[str, Any] = {"job_id": attempt.job_id, "attempt": attempt.attempt}
        if note.phase is not None:
            said["phase"] = storable(beginning(note.phase, 200, scrub.text))
        if note.progress is not None:
            said["progress"] = _progress(note.progress, scrub)
        if note.items:
            said["items"] = _items(note.items, scrub)
        if lines:
            said["lines"] = lines
        if note.output:
            said["output"] = {
                stream: {"tail": storable(ending(str(tail), TAIL, scrub.text)), "bytes": int(total)}
                for stream, (tail, total) in note.output.items()
                if stream in ("stdout", "stderr")
            }
        return said


@dataclass(slots=True)
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

    def item(self, name: str, state: str, error: str | None, again: bool) -> None:
        self.reporter.item(self.attempt, name, state, error, again)
        if state == "failed":
            self.line("error", f"item failed: {name}", {"error": error})

    def output(self, stream: str, tail: str, total: int) -> None:
        self.reporter.output(self.attempt, stream, tail, total)


class _Noting:
    """A note under the lock; leaving it rings."""

    def __init__(self, reporter: Reporter, attempt: Attempt) -> None:
        self._reporter = reporter
        self._attempt = attempt
        self._is_first = False

    def __enter__(self) -> Note:
        self._reporter._lock.acquire()
        known = len(self._reporter._notes)
        note = self._reporter._notes.setdefault(self._attempt, Note())
        self._is_first = len(self._reporter._notes) > known
        return note

    def __exit__(self, *_: object) -> None:
        self._reporter._lock.release()
        # It has rung for a note that is still there.
        if self._is_first:
            self._reporter._wake()


def _progress(said: dict[str, Any] | None, scrub: Scrub) -> Any:
    if said is None or "message" not in said:
        return _fields(said, scrub)
    message = storable(beginning(str(said["message"]), MESSAGE, scrub.text))
    return _fields({**said, "message": message}, scrub)


def _items(items: dict[str, dict[str, Any]], scrub: Scrub) -> list[dict[str, Any]]:
    """Two names that differ by a secret alone are one."""
    moves = {}
    for move in items.values():
        name = storable(scrub.text(move["name"]))[:LONGEST_NAME]
        error = move["error"] and storable(beginning(move["error"], LONGEST_ERROR, scrub.text))
        moves[name] = move | {"name": name, "error": error}
    return list(moves.values())


def _fields(value: Any, scrub: Scrub) -> Any:
    """JSON of what a job said, whatever it was: what cannot be kept is told as text."""
    if value is None:
        return None
    try:
        json.check(value, "what a job says")
        if (size := len(json.dumps(value))) > LARGEST:
            small = {name: value[name] for name in PLAIN if name in value}
            value = small | {"omitted": f"{size} characters of JSON; the limit is {LARGEST}"}
        return scrub.value(value)
    except Exception:
        return {"unreadable": storable(scrub.text(_shown(value))[:2_000])}


def _shown(value: Any) -> str:
    try:
        return repr(value)[:LONGEST_SAID]
    except Exception:  # its own __repr__ raises
        return f"a {type(value).__name__}"
