"""`fairlane ops`: what waits, what runs, what fails, who gets what done, what takes long."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli import params
from fairlane.cli.render import print_json, print_table, span
from fairlane.cli.session import Session, with_database

if TYPE_CHECKING:
    from fairlane.core.calls import Call

Row = dict[str, Any]


@click.group(no_args_is_help=False)
def ops() -> None:
    """What an operator asks of the whole installation, cheaply."""


limit_option = click.option(
    "--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Rows."
)


@ops.command()
@limit_option
@params.json_option
@with_database
async def backlog(db: Session, /, limit: int, as_json: bool) -> None:
    """How many jobs wait, by kind; `~` marks an estimate."""
    from fairlane.core import ops as asked

    def cells(row: Row) -> list[Any]:
        about = "~" if row["is_estimate"] else ""
        counts = [f"{about}{row[name]}" for name in ("queued", "scheduled")]
        return [row["definition_key"], row["queue"], *counts]

    head = ["KIND", "QUEUE", "QUEUED", "SCHEDULED"]
    await _show(db, asked.backlog(limit), as_json, head, cells, "nothing waits")


@ops.command()
@limit_option
@params.json_option
@with_database
async def active(db: Session, /, limit: int, as_json: bool) -> None:
    """What runs now, with its phase; the longest first."""
    from fairlane.core import ops as asked

    await _show(db, asked.active(limit), as_json, ACTIVE, _active, "nothing runs")


@ops.command()
@click.option(
    "--seconds",
    type=click.FloatRange(0, 31_536_000),
    default=600,
    show_default=True,
    help="Running for longer than this.",
)
@limit_option
@params.json_option
@with_database
async def slow(db: Session, /, seconds: float, limit: int, as_json: bool) -> None:
    """What has run for long."""
    from fairlane.core import ops as asked

    none = f"nothing has run for {span(timedelta(seconds=seconds))}"
    await _show(db, asked.slow(seconds, limit), as_json, ACTIVE, _active, none)


@ops.command()
@limit_option
@params.json_option
@with_database
async def errors(db: Session, /, limit: int, as_json: bool) -> None:
    """How work of the last hour ended, by kind; most failures first."""
    from fairlane.core import ops as asked

    def cells(row: Row) -> list[Any]:
        rate = "-" if row["rate"] is None else f"{row['rate']:.1%}"
        names = ("finished", "failed", "succeeded_with_errors", "retried_attempts")
        return [row["definition_key"], row["queue"], rate, *(row[name] for name in names)]

    head = ["KIND", "QUEUE", "FAILED", "FINISHED", "FAILURES", "WITH ERRORS", "RETRIED"]
    none = "nothing has ended in the last hour"
    await _show(db, asked.errors(limit), as_json, head, cells, none)


@ops.command()
@limit_option
@params.json_option
@with_database
async def throughput(db: Session, /, limit: int, as_json: bool) -> None:
    """What each tenant got done in the last hour; most worker seconds first."""
    from fairlane.core import ops as asked

    def cells(row: Row) -> list[Any]:
        wait = row["mean_wait_seconds"]
        return [
            *(row["tenant"], row["succeeded"], row["finished"], row["attempts"]),
            *(f"{row['worker_seconds']:.1f}s", "-" if wait is None else f"{wait:.1f}s"),
        ]

    head = ["TENANT", "SUCCEEDED", "FINISHED", "ATTEMPTS", "WORKED", "MEAN WAIT"]
    none = "nothing has ended in the last hour"
    await _show(db, asked.throughput(limit), as_json, head, cells, none)


ACTIVE = ["JOB", "TENANT", "KIND", "QUEUE", "RUNNING", "ATTEMPT", "PHASE", "WORKER"]


def _active(row: Row) -> list[Any]:
    return [
        *(row["id"], row["tenant"], row["definition_key"], row["queue"]),
        span(timedelta(seconds=row["running_seconds"])),
        f"{row['attempt_count']}/{row['max_attempts']}",
        *(row["phase"], row["worker"]),
    ]


async def _show(
    db: Session,
    call: "Call",
    as_json: bool,
    head: Sequence[str],
    cells: Callable[[Row], list[Any]],
    empty: str,
) -> None:
    from fairlane.cli.shapes import page

    rows = await db.send(call)
    if as_json:
        print_json(page(rows))
    else:
        print_table(head, [cells(row) for row in rows], empty)
