"""What a reader of a stream is told, and how much of it may wait for a reader that is slow."""

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import cached_property
from typing import Any
from uuid import UUID

from fairlane.access.principal import Principal
from fairlane.api.answers import plain
from fairlane.core import json
from fairlane.core.connect import Record
from fairlane.ids import short_id
from fairlane.job import JobStatus
from fairlane.redact import Redactor

WAITING = 512 * 1024  # bytes of one stream that its reader has not taken

Told = tuple[tuple[str, int], str | None, str | None]
"""State, phase and progress of a job, as they were told last."""


class Seen:
    """A job as it is now. Each event about it is written once, for all who follow."""

    def __init__(self, row: Record) -> None:
        self.id: UUID = row["id"]
        self.status = JobStatus(row["status"])
        self.told: Told = ((row["status"], row["attempt_count"]), row["phase"], row["progress"])
        self._row = row

    def news(self, old: Told | None) -> list[bytes]:
        """What differs from what was told last."""
        state, phase, progress = old or (None, None, None)
        found = [] if self.told[0] == state else [self._state]
        if self.told[1] not in (None, phase):
            found.append(self._phase)
        if self.told[2] not in (None, progress):
            found.append(self._progress)
        return found

    @cached_property
    def _state(self) -> bytes:
        shown = {name: value for name, value in self._row.items() if name != "progress"}
        return event("state", {"id": shown.pop("id"), "short_id": short_id(self.id), **shown})

    @cached_property
    def _phase(self) -> bytes:
        return event("phase", {"id": self.id, "phase": self.told[1]})

    @cached_property
    def _progress(self) -> bytes:
        progress = Redactor().value(json.loads(self._row["progress"]))
        return event("progress", {"id": self.id, "progress": progress})


class Line:
    """A line of a job's log."""

    def __init__(self, row: Record) -> None:
        self.job_id: UUID = row["job_id"]
        self.seq: int = row["seq"]
        self.after: int = row["seen"]
        self._row = row

    @cached_property
    def event(self) -> bytes:
        line = plain(self._row, "fields")
        del line["seen"]
        return event("log", line, line.pop("seq"))


class Stream:
    """What one reader follows: a job, or all that its tenant has."""

    def __init__(self, who: Principal, job_id: UUID | None, after: int) -> None:
        self.who = who
        self.job_id = job_id
        self.after = after  # the last line of the job that was told
        self.told: Told | None = None  # of the job
        self.is_primed = False
        self.is_over = False
        self.news = asyncio.Event()
        self._events: deque[bytes] = deque()
        self._bytes = 0
        self._gap = False

    def tell(self, events: Iterable[bytes]) -> None:
        """Put events in line. A reader that does not keep up is told that it has missed some."""
        for each in events:
            if self._bytes + len(each) > WAITING:
                if not self._gap:
                    self._put(GAP)
                self._gap = True
                continue
            self._gap = False
            self._put(each)

    def end(self, why: str) -> None:
        if not self.is_over:
            self._put(event("end", {"detail": why}))
            self.is_over = True

    def take(self) -> bytes:
        """All that waits, or nothing."""
        taken = b"".join(self._events)
        self._events.clear()
        self._bytes = 0
        self.news.clear()
        return taken

    def _put(self, each: bytes) -> None:
        self._events.append(each)
        self._bytes += len(each)
        self.news.set()


def event(name: str, data: Any, number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


GAP = event("gap", {"detail": "events were left out; look again"})
