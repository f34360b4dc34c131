"""A page that fills the terminal until somebody leaves it. Plain ANSI: what every terminal since
the VT100 knows, and the alternate screen, which those that do not know it pass over."""

import asyncio
import os
import shutil
import signal
import sys
import termios
import tty
from types import TracebackType
from typing import Any

ENTER = "\x1b[?1049h\x1b[?25l"  # another screen, without a cursor
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME, END_OF_LINE, BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


class Screen:
    """Raw keys in, whole pages out; the terminal is left as it was found, whatever happens."""

    def __init__(self) -> None:
        self.keys: asyncio.Queue[str] = asyncio.Queue()
        self._in, self._out = sys.stdin.fileno(), sys.stdout
        self._before: list[Any] | None = None

    def __enter__(self) -> "Screen":
        self._before = termios.tcgetattr(self._in)
        tty.setcbreak(self._in)  # Ctrl-C stays a signal
        loop = asyncio.get_running_loop()
        loop.add_reader(self._in, self._read)
        # A new size is a reason to draw anew, as a key is.
        loop.add_signal_handler(signal.SIGWINCH, self.keys.put_nowait, "resize")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self.keys.put_nowait, "q")
        self._write(ENTER)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._in)
        for number in (signal.SIGWINCH, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)
        self._write(LEAVE)
        if self._before is not None:
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, now."""
        found = shutil.get_terminal_size()
        return found.columns, found.lines

    def show(self, lines: list[str]) -> None:
        """In one write, over what is there: nothing flickers."""
        shown = [
            f"{BOLD}{line}{PLAIN}{END_OF_LINE}" if _is_head(number, line) else line + END_OF_LINE
            for number, line in enumerate(lines)
        ]
        self._write(HOME + "\n".join(shown) + BELOW)

    def _read(self) -> None:
        try:
            typed = os.read(self._in, 64)
        except BlockingIOError:
            return
        # An arrow or a function key comes as several bytes, and means nothing here.
        if typed.startswith(b"\x1b") and len(typed) > 1:
            return
        for char in typed.decode("ascii", "ignore") or "q":  # nothing at all: the terminal has gone
            self.keys.put_nowait("q" if char in "\x1b\x04" else char)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _is_head(number: int, line: str) -> bool:
    return number == 0 or line.startswith(("QUEUE", "TENANT", "WORKER"))
