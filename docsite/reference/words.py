"""Markdown of what code says of itself."""

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """A text that stays in its cell of a table, and shows what it says."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def code(text: str) -> str:
    """A text as code in a cell; nothing in it is Markdown."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(row) for row in rows]
    return ["", *(f"| {line} |" for line in lines), ""]
