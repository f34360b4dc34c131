"""`fairlane usage`: what tenants used, by day, to bill by."""

from datetime import date, timedelta

import click

from fairlane.cli import params
from fairlane.cli.render import print_json, print_table
from fairlane.cli.session import Session, with_database

MOST_DAYS = 400


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a day: give one like 2030-01-31') from None


@click.command()
@click.option("--tenant", help="One tenant's; everybody's if not given.")
@params.option("--from", parse=day, metavar="DAY", help="The first day, in UTC; 29 days before.")
@params.option("--to", parse=day, metavar="DAY", help="The last day; today if not given.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, nothing else.")
@params.json_option
@with_database
async def usage(
    db: Session, /, tenant: str | None, as_csv: bool, as_json: bool, **days: date | None
) -> None:
    """Show runs, worker seconds and time in the queue, by tenant and day."""
    from fairlane.core import usage as used

    if as_csv and as_json:
        raise click.UsageError("give --csv or --json, not both", click.get_current_context())
    until = days["to"] or await db.value("select (fairlane.clock() at time zone 'UTC')::date")
    since = days["from"] or until - timedelta(days=min(30, until.toordinal()) - 1)
    if not 0 <= (until - since).days < MOST_DAYS:
        said = f"--from {since} to --to {until}: give 1 to {MOST_DAYS} days, the first one first"
        raise click.UsageError(said, click.get_current_context())
    tenant_id = None
    if tenant is not None:
        tenant_id = await db.value("select (fairlane.tenant_named($1)).id", tenant)
    rows = [used.shown(row) for row in await db.send(used.usage(since, until, tenant_id))]
    if as_json:
        counted = await db.value("select nullif(fairlane.counted_until(), '-infinity')")
        head = {"since": since, "until": until, "counted_until": counted}
        print_json({**head, "items": rows, "next_cursor": None})
    elif as_csv:
        click.echo(used.as_csv(rows), nl=False)
    else:
        print_table(
            ["DAY", "TENANT", "RUNS", "FAILED", "ATTEMPTS", "WORKER SECONDS", "QUEUE SECONDS"],
            [
                [
                    *(row["day"], row["tenant"], row["runs"], row["failed"], row["attempts"]),
                    *(f"{row['worker_seconds']:.1f}", f"{row['queue_seconds']:.1f}"),
                ]
                for row in rows
            ],
            empty=f"nothing was used from {since} to {until}",
        )
