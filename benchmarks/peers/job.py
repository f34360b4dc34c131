"""The job that every system runs: the same work, told the same way.

A worker process counts its jobs in a page of memory that the measuring process can see too; only
a job that carries `who` also writes down when it was asked for, when it started and when it ended.
That costs under a microsecond a job, the same for everybody.
"""

import asyncio
import os
import struct
import threading
import time
from collections.abc import Mapping
from mmap import mmap
from pathlib import Path
from typing import Any, NamedTuple

PAGE = struct.Struct("=qd")  # how many, and when the first
MARK = struct.Struct("=qddd")
TURNS, LOOKS = 20_000, 500  # of the spin, to find its pace: a third of a second


class Mark(NamedTuple):
    who: int
    asked: float
    started: float
    ended: float


class Teller:
    """What one worker process tells. Monotonic clocks agree between the processes of a machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._pid = 0
        self._count = 0
        self._first = 0.0

    def started(self) -> float:
        now = time.monotonic()
        with self._lock:
            if self._pid != os.getpid():  # Celery forks
                self._open(now)
            self._count += 1
            PAGE.pack_into(self._page, 0, self._count, self._first)
        return now

    def ended(self, job: Mapping[str, Any], started: float) -> None:
        # One small write to a file opened for appending never mixes with another's.
        os.write(self._marks, MARK.pack(job["who"], job["asked"], started, time.monotonic()))

    def _open(self, now: float) -> None:
        self._pid, self._count, self._first = os.getpid(), 0, now
        with (self._folder / f"count-{self._pid}").open("w+b") as file:
            file.write(bytes(PAGE.size))
            file.flush()
            self._page = mmap(file.fileno(), PAGE.size)
        self._marks = os.open(self._folder / "marks", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


class Tally:
    """What the measuring process reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _pages(self) -> list[tuple[int, float]]:
        found = (path.read_bytes() for path in self._folder.glob("count-*"))
        return [PAGE.unpack(page) for page in found if len(page) == PAGE.size]

    @property
    def count(self) -> int:
        return sum(count for count, _ in self._pages())

    @property
    def first(self) -> float:
        return min(first for count, first in self._pages() if count)

    def marks(self, who: int) -> list[Mark]:
        path = self._folder / "marks"
        told = path.read_bytes() if path.exists() else b""
        whole = told[: len(told) // MARK.size * MARK.size]
        return [mark for mark in map(Mark._make, MARK.iter_unpack(whole)) if mark.who == who]


_teller: Teller


def tell_into(folder: Path) -> None:
    """Once a process, before its first job."""
    global _teller
    _teller = Teller(folder)


def calibrate() -> float:
    """The pace of the spin here: its turns in a microsecond.

    Once a run, and then in the payload: where each worker looked for itself, one that looked in a
    slow moment would do less work than the others.
    """
    return TURNS / min(_seconds_of(TURNS) for _ in range(LOOKS)) / 1e6


def _seconds_of(turns: int) -> float:
    begun = time.thread_time()
    _spin(turns)
    return time.thread_time() - begun


def _spin(turns: int) -> None:
    for _ in range(turns):
        pass


async def run(job: Mapping[str, Any]) -> None:
    started = _teller.started()
    if job.get("us"):
        _spin(round(job["us"] * job["pace"]))
    if job.get("ms"):
        await asyncio.sleep(job["ms"] / 1000)
    if job.get("who"):
        _teller.ended(job, started)


def run_now(job: Mapping[str, Any]) -> None:
    """The same for those whose jobs are no coroutines."""
    started = _teller.started()
    if job.get("us"):
        _spin(round(job["us"] * job["pace"]))
    if job.get("ms"):
        time.sleep(job["ms"] / 1000)
    if job.get("who"):
        _teller.ended(job, started)
