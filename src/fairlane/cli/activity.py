"""The live line of `fairlane up`: what is going on, on a terminal and in a log."""

import asyncio
import sys
import time
from collections import deque
from contextlib import suppress

from fairlane.cli.render import cut, terminal_width
from fairlane.core import connect

CLEAR = "\r\x1b[K"
EVERY_ON_TERMINAL, EVERY_IN_LOG = 1.0, 10.0
OVER = 5.0  # seconds that the rate is taken over

# Finished jobs are told by the statistics of the history's partitions: nothing is counted.
NOW = """
select (select coalesce(sum(n_tup_ins), 0)::bigint
          from pg_stat_user_tables
         where schemaname = 'fairlane' and relname like 'history%') as ended,
       (select count(*) from (select from fairlane.dead_letter
                               where status = 'pending' limit 1000) d) as dead,
       (select coalesce(sum(running), 0)::bigint from fairlane.queues) as running,
       (select string_agg(name || ' ' || queued, ', ' order by position, name)
          from fairlane.queues) as queued
"""


class Screen:
    """Where `up` writes: lines that stay, and one at the bottom that changes."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()
        self._bottom = ""

    def say(self, text: str) -> None:
        self._write(f"{CLEAR}{text}\n{self._bottom}" if self.is_terminal else f"{text}\n")

    def show(self, text: str) -> None:
        """Change the bottom line; in a log, where nothing can change, add one."""
        if not self.is_terminal:
            self._write(f"{text}\n")
            return
        self._bottom = cut(text, (terminal_width() or 80) - 1)
        self._write(f"{CLEAR}{self._bottom}")

    def close(self) -> None:
        if self.is_terminal:
            self._bottom = ""
            self._write(CLEAR)

    def _write(self, text: str) -> None:
        # Whoever read us may be gone; that is no reason to leave workers running unwatched.
        with suppress(BrokenPipeError):
            sys.stdout.write(text)
            sys.stdout.flush()


class Activity:
    """Looks once in a while and shows what has changed."""

    def __init__(self, url: str, screen: Screen) -> None:
        self._url = url
        self._screen = screen
        self._every = EVERY_ON_TERMINAL if screen.is_terminal else EVERY_IN_LOG
        self._seen: deque[tuple[float, int]] = deque()
        self._last = ""

    async def run(self) -> None:
        while True:
            try:
                async with connect.connected(self._url, name="fairlane up") as conn:
                    while True:
                        self._tell(await conn.fetchrow(NOW))
                        await asyncio.sleep(self._every)
            except Exception as error:  # the line is a courtesy: it ends nothing
                self._screen.show(f"no activity to show: {' '.join(str(error).split())}")
                await asyncio.sleep(self._every)

    def _tell(self, row: connect.Record | None) -> None:
        assert row is not None
        dead = f"{row['dead']}{'+' if row['dead'] == 1000 else ''}"
        line = (
            f"{self._rate(row['ended']):.0f} jobs/s, {row['running']} running, "
            f"queued: {row['queued']}, dead letters: {dead}"
        )
        if line != self._last or self._screen.is_terminal:
            self._screen.show(f"{time.strftime('%H:%M:%S')}  {line}")
        self._last = line

    def _rate(self, ended: int) -> float:
        """Jobs a second over the last few seconds."""
        now = time.monotonic()
        self._seen.append((now, ended))
        while len(self._seen) > 2 and now - self._seen[0][0] > OVER:
            self._seen.popleft()
        then, before = self._seen[0]
        return max(0, ended - before) / (now - then) if now > then else 0.0
