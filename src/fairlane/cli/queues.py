"""`fairlane queues`: tiers of work with slots and a policy of their own."""

from typing import Any

import click

from fairlane.cli import params
from fairlane.cli.render import ago, or_none, print_fields, print_json, print_table
from fairlane.cli.session import Session, with_database


@click.group(no_args_is_help=False)
def queues() -> None:
    """Tiers of work: slots, timeouts, limits, pauses."""


@queues.command("list")
@params.json_option
@with_database
async def list_queues(db: Session, /, as_json: bool) -> None:
    """List queues with their depth and the workers that serve them."""
    from fairlane.cli.shapes import page

    rows = await db.fetch("select * from fairlane.queues order by position, name")
    if as_json:
        print_json(page(rows))
        return
    print_table(
        ["QUEUE", "QUEUED", "SCHEDULED", "RUNNING", "SLOTS", "WORKERS", "TIMEOUT", "STATE"],
        [
            [
                row["name"],
                row["queued"],
                row["scheduled"],
                row["running"],
                row["worker_slots"],
                row["workers"],
                f"{row['timeout_seconds']}s",
                "paused" if row["paused_at"] else "open",
            ]
            for row in rows
        ],
        empty="no queues",
    )


@queues.command()
@click.argument("name")
@params.json_option
@with_database
async def show(db: Session, /, name: str, as_json: bool) -> None:
    """Show one queue."""
    await print_queue(db, name, as_json)


def policy_options(command: params.F) -> params.F:
    whole = click.IntRange(1, params.INT4)
    for decorate in (
        params.option(
            "--retention-days", parse=days_kept, metavar="N|none", help="none: as each plan says."
        ),
        click.option("--position", type=click.IntRange(0, params.INT4), help="Order in lists."),
        click.option("--counts-against-plan/--apart-from-plan", default=None),
        click.option("--backlog-policy", type=click.Choice(["warn", "reject"])),
        params.option(
            "--max-backlog-per-tenant", parse=params.limit(), metavar="N|none", help="Live jobs."
        ),
        params.option(
            "--starts-per-minute-per-tenant", parse=params.limit(1), metavar="N|none", help="Rate."
        ),
        params.option(
            "--max-running-per-tenant", parse=params.limit(), metavar="N|none", help="At once."
        ),
        params.option(
            "--retry-delays", parse=delays, metavar="S,S,...", help="Seconds between attempts."
        ),
        click.option("--max-attempts", type=whole, help="Before a job is parked."),
        click.option("--timeout-seconds", type=whole, help="For one attempt."),
        click.option("--slots", type=whole, help="Of a worker that is told nothing else."),
    ):
        command = decorate(command)
    return command


def days_kept(text: str) -> Any:
    found = params.limit(1)(text)
    if found is not params.NONE and found > 3650:
        raise ValueError(f'"{text}": give 1 to 3650 days, or none')
    return found


def delays(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) <= params.INT4 for part in parts):
        raise ValueError(f'"{text}": give seconds, like 60,300,900')
    return [int(part) for part in parts]


@queues.command()
@params.argument("name", parse=params.new_name)
@policy_options
@params.json_option
@with_database
async def create(db: Session, /, name: str, as_json: bool, **options: Any) -> None:
    """Add a queue; workers serve it when they are told to."""
    from fairlane.core import calls
    from fairlane.errors import ValueRefused

    if await there_is(db, name):
        raise ValueRefused(
            f'queue "{name}" is there already; change it with: fairlane queues set {name}'
        )
    await db.change(calls.set_queue(name, params.given_of(options)))
    await print_queue(db, name, as_json)


@queues.command("set")
@click.argument("name")
@policy_options
@params.json_option
@with_database
async def set_queue(db: Session, /, name: str, as_json: bool, **options: Any) -> None:
    """Change a queue; `none` takes a limit away."""
    from fairlane.core import calls

    changes = params.changes_of(options)
    await refuse_unknown(db, name)
    await db.change(calls.set_queue(name, changes))
    await print_queue(db, name, as_json)


@queues.command()
@click.argument("name")
@params.json_option
@with_database
async def pause(db: Session, /, name: str, as_json: bool) -> None:
    """Start nothing more of a queue; what runs goes on."""
    from fairlane.core import calls

    await db.change(calls.pause_queue(name))
    await print_queue(db, name, as_json)


@queues.command()
@click.argument("name")
@params.json_option
@with_database
async def resume(db: Session, /, name: str, as_json: bool) -> None:
    """Let a paused queue go on."""
    from fairlane.core import calls

    await db.change(calls.resume_queue(name))
    await print_queue(db, name, as_json)


async def there_is(db: Session, name: str) -> bool:
    return bool(await db.fetch("select from fairlane.queue where name = $1", name))


async def refuse_unknown(db: Session, name: str) -> None:
    from fairlane.errors import QueueNotFound

    if not await there_is(db, name):
        raise QueueNotFound(
            f'queue "{name}" is unknown; see: fairlane queues list, '
            f"or add it with: fairlane queues create {name}"
        )


async def print_queue(db: Session, name: str, as_json: bool) -> None:
    await refuse_unknown(db, name)
    (row,) = await db.fetch("select * from fairlane.queues where name = $1", name)
    if as_json:
        print_json(row)
        return
    now = await db.now()
    limits = (
        "max_running_per_tenant",
        "starts_per_minute_per_tenant",
        "max_backlog_per_tenant",
    )
    row["retention_days"] = row["retention_days"] or "as the plan says"
    print_fields(
        row
        | {limit: or_none(row[limit]) for limit in limits}
        | {name: row[name] and ago(row[name], now) for name in ("paused_at", "updated_at")}
    )
