"""A look as lines of text, as wide and as high as a terminal is."""

from collections.abc import Sequence
from typing import Any

from fairlane.cli.render import clean, cut, pad, width

GAP = "  "
KEYS = "q quit   space look now   sort tenants by: d due  r running  t worker time  n name"


def lines(look: dict[str, Any], *, across: int | None = None, down: int | None = None) -> list[str]:
    """The page. Where it is too high, tenants and workers give way; the queues stay."""
    head = [_headline(look), ""]
    queues = [*_queues(look["queues"]), ""]
    left = None if down is None else max(down - len(head) - len(queues) - 1, 4)
    tenants = _tenants(look["tenants"])
    workers = _workers(look["workers"])
    if left is not None:
        of_workers = min(len(workers), max(left // 2, left - len(tenants)))
        tenants = _shortened(tenants, left - of_workers)
        workers = _shortened(workers, of_workers)
    found = [cut(line.rstrip(), across) for line in (*head, *queues, *tenants, "", *workers)]
    return found if down is None else found[:down]


def _headline(look: dict[str, Any]) -> str:
    totals = look["totals"]
    return GAP.join(
        (
            f"fairlane {look['at']:%H:%M:%S} UTC",
            f"due {totals['due']:,}",
            f"scheduled {totals['scheduled']:,}",
            f"running {totals['running']:,}/{totals['slots']:,}",
            f"workers {totals['workers']:,}",
            f"starts {_rate(totals['starts_per_second'])}/s",
            f"finished {_rate(totals['finished_per_second'])}/s",
            f"failed {_rate(totals['failed_per_second'])}/s",
        )
    )


def _queues(rows: Sequence[dict[str, Any]]) -> list[str]:
    head = ("QUEUE", "DUE", "OLDEST", "SCHEDULED", "RUNNING", "SLOTS", "WORKERS")
    rates = ("STARTS/S", "FINISHED/S", "FAILED/S", "STATE")
    return _table(
        (*head, *rates),
        [
            (
                row["name"],
                f"{row['due']:,}",
                _span(row["oldest_due_seconds"]),
                f"{row['scheduled']:,}",
                f"{row['running']:,}",
                f"{row['slots']:,}",
                row["workers"],
                _rate(row["starts_per_second"]),
                _rate(row["finished_per_second"]),
                _rate(row["failed_per_second"]),
                "paused" if row["paused"] else "open",
            )
            for row in rows
        ],
        words=(0, 10),
    )


def _tenants(rows: Sequence[dict[str, Any]]) -> list[str]:
    return _table(
        ("TENANT", "DUE", "RUNNING", "LIMIT", "WEIGHT", "WORKER TIME", "STATE"),
        [
            (
                row["name"],
                f"{row['due']:,}",
                f"{row['running']:,}",
                "none" if row["max_running"] is None else f"{row['max_running']:,}",
                f"{row['weight']:g}",
                _percent(row["worker_time_share"]),
                "paused" if row["paused"] else "active",
            )
            for row in rows
        ],
        words=(0, 6),
    )


def _workers(rows: Sequence[dict[str, Any]]) -> list[str]:
    return _table(
        ("WORKER", "HOST", "BUSY", "SLOTS", "HEARTBEAT", "STATE", "QUEUES"),
        [
            (
                row["name"],
                row["host"],
                row["running"],
                row["slots"],
                f"{_span(row['heartbeat_age_seconds'])} ago",
                row["state"],
                " ".join(f"{queue}={slots}" for queue, slots in row["queues"].items()),
            )
            for row in rows
        ],
        words=(0, 1, 5, 6),
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], words: Sequence[int]) -> list[str]:
    """Columns under a head: words to the left, figures to the right."""
    cells = [list(head), *([clean(cell) for cell in row] for row in rows)]
    sizes = [max(width(row[place]) for row in cells) for place in range(len(head))]
    return [
        GAP.join(
            pad(cell, sizes[place]) if place in words else " " * (sizes[place] - width(cell)) + cell
            for place, cell in enumerate(row)
        )
        for row in cells
    ]


def _shortened(table: list[str], most: int) -> list[str]:
    if len(table) <= most:
        return table
    return [*table[: max(most - 1, 1)], f"... {len(table) - max(most - 1, 1)} more"]


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.1f}s"
