"""`fairlane jobs`: look at jobs, cancel them, run them again, ask why they wait."""

from typing import Any
from uuid import UUID

import click

from fairlane.cli import params
from fairlane.cli.drawing import drawn
from fairlane.cli.render import (
    ago,
    clean,
    moment,
    print_fields,
    print_json,
    print_more,
    print_table,
)
from fairlane.cli.session import Row, Session, value_of, with_database
from fairlane.job import JobStatus

STATUSES = [status.value for status in JobStatus]


@click.group(no_args_is_help=False)
def jobs() -> None:
    """See jobs, cancel them, run them again, ask why they wait."""


@jobs.command("list")
@click.option("--tenant")
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--queue")
@click.option("--definition", metavar="KEY")
@params.page_options
@params.json_option
@with_database
async def list_jobs(
    db: Session,
    /,
    tenant: str | None,
    status: str | None,
    queue: str | None,
    definition: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List jobs, newest first."""
    from fairlane.cli.shapes import job as shape
    from fairlane.cli.shapes import page
    from fairlane.core import calls

    before = None if cursor is None else read_cursor(cursor)
    newest = calls.newest(tenant, status, queue, definition, before, limit + 1)
    ids = [row["id"] for row in await db.send(newest)]
    following = str(ids[limit - 1]) if len(ids) > limit else None
    found = [shape(row) for row in await db.send(calls.jobs(ids[:limit]))]
    if as_json:
        print_json(page(found, following))
        return
    now = await db.now()
    print_table(
        ["ID", "STATUS", "TENANT", "DEFINITION", "QUEUE", "TRIES", "CREATED", "NOTE"],
        [
            [
                job["short_id"],
                job["status"],
                job["tenant"],
                job["definition_key"],
                job["queue"],
                f"{job['attempt_count']}/{job['max_attempts']}",
                ago(job["created_at"], now),
                note_of(job),
            ]
            for job in found
        ],
        empty="no jobs",
    )
    print_more(following)


@jobs.command()
@params.argument("job_id", parse=params.job_id)
@click.option("--message", is_flag=True, help="As the message that a broker would carry.")
@params.json_option
@with_database
async def show(db: Session, /, job_id: UUID, message: bool, as_json: bool) -> None:
    """Show one job."""
    from fairlane.cli import shapes

    row = await the_job(db, job_id)
    if message:
        print_json(shapes.message(row, app_id="fairlane"))
    elif as_json:
        print_json(shapes.job(row))
    else:
        await print_job(db, row)


@jobs.command()
@params.argument("job_id", parse=params.job_id)
@click.option("--reason", help="Kept with the job.")
@params.json_option
@with_database
async def cancel(db: Session, /, job_id: UUID, reason: str | None, as_json: bool) -> None:
    """Cancel a job: at once while it waits; a running one is asked to stop."""
    from fairlane.cli.shapes import job as shape
    from fairlane.core import calls

    status = value_of(await db.change(calls.cancel(job_id, reason)))
    if as_json:
        print_json(shape(await the_job(db, job_id)))
    else:
        asked = status == "running"
        click.echo("asked its worker to stop it" if asked else "canceled")


@jobs.command()
@params.argument("job_id", parse=params.job_id)
@click.argument("number", type=click.IntRange(-(2**31), 2**31 - 1), required=False)
@params.json_option
@with_database
async def priority(db: Session, /, job_id: UUID, number: int | None, as_json: bool) -> None:
    """Move a job that waits: a lower NUMBER goes first in its lane.

    Without a NUMBER it goes ahead of all that wait there now.
    """
    from fairlane.cli.shapes import job as shape
    from fairlane.core import calls

    found = value_of(await db.change(calls.set_priority(job_id, number)))
    if as_json:
        print_json(shape(await the_job(db, job_id)))
    else:
        click.echo(f"priority {found}")


@jobs.command()
@params.argument("job_id", parse=params.job_id)
@params.json_option
@with_database
async def retry(db: Session, /, job_id: UUID, as_json: bool) -> None:
    """Run a finished job again, as a new job; prints the new id."""
    from fairlane.cli.shapes import job as shape
    from fairlane.core import calls

    new_id = value_of(await db.change(calls.retry(job_id)))
    if as_json:
        print_json(shape(await the_job(db, new_id)))
    else:
        click.echo(new_id)


@jobs.command()
@params.argument("job_id", parse=params.job_id)
@params.json_option
@with_database
async def attempts(db: Session, /, job_id: UUID, as_json: bool) -> None:
    """Show what became of each try of a job."""
    from fairlane.cli.shapes import page, without_secrets
    from fairlane.cli.wait import gist
    from fairlane.core import calls

    await the_job(db, job_id)
    found = await db.send(calls.attempts(job_id))
    rows = [without_secrets(row) for row in found]
    if as_json:
        print_json(page(rows))
        return
    now = await db.now()
    print_table(
        ["ATTEMPT", "OUTCOME", "WORKER", "STARTED", "SECONDS", "ERROR"],
        [
            [
                row["attempt"],
                row["outcome"],
                row["worker"],
                ago(row["started_at"], now),
                f"{((row['finished_at'] or now) - row['started_at']).total_seconds():.1f}",
                gist(row["error"]) or "-",
            ]
            for row in rows
        ],
        empty="no attempts yet",
    )


@jobs.command()
@params.argument("job_id", parse=params.job_id)
@params.json_option
@with_database
async def explain(db: Session, /, job_id: UUID, as_json: bool) -> None:
    """Say why a job is where it is."""
    found = await db.value("select fairlane.explain($1)", job_id)
    # The answer first; jsonb keeps no order.
    why = {name: found.pop(name) for name in ("id", "status", "reason", "detail")} | found
    if as_json:
        print_json(why)
    else:
        print_fields(why)


async def the_job(db: Session, job_id: UUID) -> Row:
    from fairlane.cli.wait import JOB
    from fairlane.errors import JobNotFound

    rows = await db.fetch(JOB, job_id)
    if not rows:
        raise JobNotFound(f"job {job_id} is not there: the id is wrong, or its retention is over")
    return rows[0]


async def print_job(db: Session, row: Row) -> None:
    from fairlane.cli.shapes import job as shape

    now = await db.now()
    job = shape(row)
    times = ("created_at", "scheduled_for", "queued_at", "started_at", "finished_at")
    for name in times:
        if job[name] is not None:
            job[name] = f"{moment(job[name])} ({ago(job[name], now)})"
    job["attempt_count"] = f"{job['attempt_count']} of {job.pop('max_attempts')}"
    if not job["replays"]:
        del job["replays"]
    if (link := db.settings.trace_link(job["trace_id"])) is not None:
        job["trace_id"] = f"{job['trace_id']} ({link})"
    items = (job["progress"] or {}).get("items") or {}
    job["progress"] = drawn(job["progress"])
    print_fields({**job, "result": row["result"]})
    for state in ("in_progress", "completed", "failed"):
        for item in items.get(state, []):
            name, error = (item["name"], item["error"]) if state == "failed" else (item, "")
            click.echo(
                f"  {state.replace('_', ' '):<11}  {clean(name)}{error and ': '}{clean(error)}"
            )
        if left := items.get("counts", {}).get(state, 0) - len(items.get(state, [])):
            click.echo(f"  {state.replace('_', ' '):<11}  ... and {left:,} more")


def note_of(job: dict[str, Any]) -> str:
    """The one thing worth a glance: how far it is, or what went wrong."""
    from fairlane.cli.wait import gist

    if job["status"] == "running":
        said = [job["phase"], drawn(job["progress"])]
        return "  ".join(each for each in said if each) or (
            f"on {job['worker']}" if job["worker"] else ""
        )
    return gist(job["last_error"]) if job["status"] != "succeeded" else ""


def read_cursor(cursor: str) -> UUID:
    try:
        return UUID(cursor)
    except ValueError:
        raise click.BadParameter(
            f'"{cursor}" does not come from a list; leave it out to begin at the top',
            click.get_current_context(),
            param_hint="--cursor",
        ) from None
