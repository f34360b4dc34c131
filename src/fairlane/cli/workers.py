"""`fairlane workers`: the processes that claim jobs."""

import click

from fairlane.cli import params
from fairlane.cli.render import ago, print_fields, print_json, print_table
from fairlane.cli.session import Row, Session, with_database


@click.group(no_args_is_help=False)
def workers() -> None:
    """The processes that claim jobs."""


@workers.command("list")
@click.option("--all", "every", is_flag=True, help="Also those that have stopped.")
@params.json_option
@with_database
async def list_workers(db: Session, /, every: bool, as_json: bool) -> None:
    """List workers, what they serve and how they are."""
    from fairlane.cli.shapes import page

    rows = await db.fetch(
        """
        select * from fairlane.workers
         where $1 or stopped_at is null
         order by started_at desc
        """,
        every,
    )
    if as_json:
        print_json(page(rows))
        return
    now = await db.now()
    print_table(
        ["WORKER", "STATE", "RUNNING", "QUEUES", "HOST", "PID", "STARTED", "LAST SEEN"],
        [
            [
                row["name"],
                row["state"],
                row["running"],
                " ".join(f"{queue}={slots}" for queue, slots in row["queues"].items()),
                row["hostname"],
                row["pid"],
                ago(row["started_at"], now),
                ago(row["last_seen_at"], now),
            ]
            for row in rows
        ],
        empty="no workers; start one with: fairlane worker",
    )


@workers.command()
@click.argument("worker")
@params.json_option
@with_database
async def show(db: Session, /, worker: str, as_json: bool) -> None:
    """Show one worker, by its name or id."""
    rows = await named(db, worker)
    if as_json:
        print_json(rows[0])
        return
    row, now = rows[0], await db.now()
    times = ("started_at", "last_seen_at", "lease_expires_at", "stopped_at")
    queues = " ".join(f"{queue}={slots}" for queue, slots in row["queues"].items())
    print_fields(
        row | {"queues": queues} | {each: ago(row[each], now) for each in times if row.get(each)}
    )


@workers.command()
@click.argument("worker")
@params.json_option
@with_database
async def drain(db: Session, /, worker: str, as_json: bool) -> None:
    """Ask a worker to end, by its name or id: it claims no more and finishes what it runs."""
    from fairlane.core import calls

    row = the_one(await named(db, worker), worker, "live", "draining")
    await db.change(calls.drain_worker(row["id"]))
    if as_json:
        print_json((await named(db, str(row["id"])))[0])
    else:
        click.echo(f"asked {row['name']} to end when its {row['running']} jobs have")


@workers.command()
@click.argument("worker")
@params.json_option
@with_database
async def forget(db: Session, /, worker: str, as_json: bool) -> None:
    """Take a worker that is lost or stopped off the list, by its name or id."""
    from fairlane.core import calls

    row = the_one(await named(db, worker), worker, "lost", "stopped")
    await db.change(calls.forget_worker(row["id"]))
    if as_json:
        print_json(row)
    else:
        click.echo(f"forgot {row['name']}")


async def named(db: Session, worker: str) -> list[Row]:
    """All by this name or id, newest first."""
    from fairlane.errors import FairlaneError

    rows = await db.fetch(
        "select * from fairlane.workers where $1 in (name, id::text) order by started_at desc",
        worker,
    )
    if not rows:
        raise FairlaneError(f'worker "{worker}" is unknown; see: fairlane workers list --all')
    return rows


def the_one(rows: list[Row], worker: str, *states: str) -> Row:
    """The one that is meant: a name may have been another's before. What is wrong with a single one
    the database tells."""
    from fairlane.errors import FairlaneError

    fit = [row for row in rows if row["state"] in states] or rows[:1]
    if len(fit) > 1:
        ids = ", ".join(str(row["id"]) for row in fit[:5])
        raise FairlaneError(f'{len(fit)} workers are named "{worker}"; say which by its id: {ids}')
    return fit[0]
