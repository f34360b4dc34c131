"""One worker process of one system.

    python -m benchmarks.peers.worker SYSTEM SLOTS FOLDER PLACE

It says when it is ready and waits for the word to begin, so that imports are not measured. When its
standard input ends, the process that measures is gone, and this one with all its children goes too.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Awaitable
from pathlib import Path

import uvloop
from benchmarks.peers.job import tell_into
from benchmarks.peers.side import Place, Side, side_of


def main(system: str, slots: int, folder: Path, place: Place) -> None:
    tell_into(folder)
    side = side_of(system)
    if side.blocking:
        asyncio.run(side.open(place))
        _wait_for_word()
        side.work(slots)
    else:
        uvloop.run(_work(side, slots, place))
    raise SystemExit("its worker has ended before its jobs")


async def _work(side: Side, slots: int, place: Place) -> None:
    await side.open(place)
    await asyncio.to_thread(_wait_for_word)
    working = side.work(slots)
    assert isinstance(working, Awaitable)
    await working


def _wait_for_word() -> None:
    os.write(1, b"ready\n")
    if not os.read(0, 1):
        raise SystemExit
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Place(**json.loads(sys.argv[4])))
