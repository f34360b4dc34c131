"""What commands print: JSON for programs, aligned text for people."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

GAP = "  "


def print_json(value: Any) -> None:
    """The value as JSON, laid out, and nothing else."""
    import msgspec

    from fairlane.core.json import dumps

    click.echo(msgspec.json.format(dumps(value), indent=2))


def print_table(head: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """Columns under a head, each as wide as it needs; cut at the edge of the terminal."""
    cells = [[clean(cell) for cell in row] for row in rows]
    if not cells:
        click.echo(empty, err=True)
        return
    widths = [max(map(width, column)) for column in zip(head, *cells, strict=True)]
    edge = terminal_width()
    for row in [list(head), *cells]:
        padded = (pad(cell, size) for cell, size in zip(row, widths, strict=True))
        click.echo(cut(GAP.join(padded).rstrip(), edge))


def print_fields(fields: Mapping[str, Any]) -> None:
    """One field a line; what is not set is left out."""
    shown = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
    edge = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        click.echo(f"{name:<{edge}}{GAP}{clean(value)}")


def print_more(cursor: str | None) -> None:
    if cursor is not None:
        click.echo(f"there are more: --cursor {cursor}", err=True)


def clean(value: Any) -> str:
    """One line of text that can do nothing to a terminal."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case str():
            text = value
        case datetime():
            text = moment(value)
        case dict() | list():
            from fairlane.core.json import dumps

            text = dumps(value)
        case _:
            text = str(value)
    return "".join(
        " " if char in "\n\r\t" else "\N{REPLACEMENT CHARACTER}" if _moves(char) else char
        for char in text
    )


def _moves(char: str) -> bool:
    """A control character, or one that changes the direction of what follows."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pad(text: str, size: int) -> str:
    return text + " " * (size - width(text))


def cut(text: str, edge: int | None) -> str:
    if edge is None or width(text) <= edge:
        return text
    kept, used = "", 1
    for char in text:
        used += _cells(char)
        if used > edge:
            break
        kept += char
    return f"{kept}…"


def terminal_width() -> int | None:
    """Where lines end; nowhere when the output is a file or a pipe."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return None


def moment(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def ago(when: datetime | None, now: datetime) -> str:
    """A time as people say it: "3m ago", "in 2h"."""
    if when is None:
        return "-"
    gone = now - when
    if abs(gone) < timedelta(seconds=1):
        return "now"
    return f"{span(gone)} ago" if gone > timedelta(0) else f"in {span(-gone)}"


def span(length: timedelta) -> str:
    """A length of time in its largest unit, two where one says too little."""
    seconds = int(length.total_seconds())
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 2 * 3600:
        return f"{seconds // 60}m"
    if seconds < 48 * 3600:
        return f"{seconds // 3600}h"
    return f"{seconds // 86400}d"


def or_none(value: Any) -> Any:
    """A limit in a table: none where nothing limits."""
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else value
