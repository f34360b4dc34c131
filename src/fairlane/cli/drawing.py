"""How far a job has come, drawn for a person."""

import sys
from typing import Any

import click

from fairlane.cli.render import clean, cut, terminal_width

CELLS = 20  # of a bar
NAMED = 5  # items in progress that are named
STILL = "\r\x1b[2K"  # back to the start of the line, and it is empty


def drawn(progress: dict[str, Any] | None) -> str:
    """One line: a bar where there is a total, the message, what else was said, the items."""
    said = dict(progress or {})
    items = said.pop("items", None)
    parts = [_bar(said.pop("done", None), said.pop("total", None)), clean(said.pop("message", ""))]
    parts += [f"{clean(name)}={clean(value)}" for name, value in said.items()]
    if items:
        parts.append(_items(items))
    return "  ".join(part for part in parts if part)


def failures(progress: dict[str, Any] | None) -> list[str]:
    """A line for each item that failed, as far as they are named."""
    found = ((progress or {}).get("items") or {}).get("failed", [])
    return [f"item failed: {clean(each['name'])}: {clean(each['error'])}" for each in found]


def _bar(done: Any, total: Any) -> str:
    if not _is_number(done):
        return ""
    if not _is_number(total) or total <= 0:
        return f"{done:g}"
    part = min(max(done / total, 0), 1)
    full = int(part * CELLS)
    return f"[{'#' * full}{'.' * (CELLS - full)}] {done:g}/{total:g} {part:.0%}"


def _items(items: dict[str, Any]) -> str:
    counts = items["counts"]
    words = f"items: {counts['completed']} of {items['total']} completed"
    if counts["failed"]:
        words += f", {counts['failed']} failed"
    if counts["in_progress"]:
        named = ", ".join(clean(name) for name in items["in_progress"][:NAMED])
        more = ", ..." if counts["in_progress"] > NAMED else ""
        words += f", {counts['in_progress']} in progress: {named}{more}"
    return words


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Screen:
    """Lines on stderr. On a terminal the last one shows how far the job is and is drawn over; in a
    file each stands for itself."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._seen: set[str] = set()
        self._drawn = ""

    def tell(self, lines: list[str]) -> bool:
        """Those that were not told before; whether there were any."""
        news = [line for line in lines if line not in self._seen]
        self._seen.update(news)
        if news:
            self._clear()
        for line in news:
            click.echo(line, err=True)
        return bool(news)

    def tell_once(self, what: str, line: str) -> None:
        if what not in self._seen:
            self._seen.add(what)
            self.tell([line])

    def draw(self, progress: str) -> bool:
        """How far it is; whether that has changed."""
        if progress == self._drawn:
            return False
        if self._is_terminal:
            self._clear()
            click.echo(cut(progress, terminal_width() or 80), err=True, nl=False)
        elif progress:
            click.echo(f"progress: {progress}", err=True)
        self._drawn = progress
        return True

    def _clear(self) -> None:
        if self._is_terminal and self._drawn:
            click.echo(STILL, err=True, nl=False)
            self._drawn = ""
