"""`fairlane workers`: the processes that claim jobs."""

import click

from fairlane.cli import params
from fairlane.cli.render import ago, print_json, print_table
from fairlane.cli.session import Session, with_database


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
