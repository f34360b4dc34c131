"""`fairlane dead`: the dead letters, singly or by filter."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import click

from fairlane.cli import params
from fairlane.cli.render import ago, moment, print_fields, print_json, print_more, print_table
from fairlane.cli.session import Session, with_database

STATUSES = ["pending", "retried", "resolved", "ignored", "all"]

LETTERS = "select * from fairlane.dead_letters l"


@click.group(no_args_is_help=False)
def dead() -> None:
    """See what waits for a person; replay, resolve, ignore."""


@dead.command("list")
@click.option("--tenant")
@click.option("--definition", metavar="KEY")
@click.option("--queue")
@click.option("--assignee", metavar="NAME", help="Whom it is assigned to; '' for nobody.")
@click.option("--status", type=click.Choice(STATUSES), default="pending", show_default=True)
@params.page_options
@params.json_option
@with_database
async def list_dead(
    db: Session,
    /,
    tenant: str | None,
    definition: str | None,
    queue: str | None,
    assignee: str | None,
    status: str,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List dead letters, newest first."""
    from fairlane.cli.filters import check_names
    from fairlane.cli.jobs import read_cursor
    from fairlane.cli.shapes import dead_letter, page
    from fairlane.cli.wait import gist

    await check_names(db, tenant=tenant, queue=queue, definition=definition)
    rows = await db.fetch(
        f"""{LETTERS}
         where ($1::text is null or l.tenant = $1)
           and ($2::text is null or l.definition_key = $2)
           and ($3::text is null or l.queue = $3)
           and ($4::text = 'all' or l.status = $4)
           and ($5::uuid is null or l.id < $5)
           and ($6::text is null or coalesce(l.assignee, '') = $6)
         order by l.id desc
         limit $7
        """,
        tenant,
        definition,
        queue,
        status,
        None if cursor is None else read_cursor(cursor),
        assignee,
        limit + 1,
    )
    found = [dead_letter(row) for row in rows[:limit]]
    following = str(found[-1]["id"]) if len(rows) > limit else None
    if as_json:
        print_json(page(found, following))
        return
    now = await db.now()
    print_table(
        ["ID", "STATUS", "TENANT", "DEFINITION", "REASON", "TRIES", "DIED", "ERROR"],
        [
            [
                letter["short_id"],
                letter["status"],
                letter["tenant"],
                letter["definition_key"],
                letter["reason"],
                letter["attempt_count"],
                ago(letter["died_at"], now),
                gist(letter["last_error"]),
            ]
            for letter in found
        ],
        empty="no dead letters",
    )
    print_more(following)


@dead.command()
@params.argument("job_id", parse=params.job_id)
@params.json_option
@with_database
async def show(db: Session, /, job_id: UUID, as_json: bool) -> None:
    """Show one dead letter."""
    letter = await the_letter(db, job_id)
    if as_json:
        print_json(letter)
        return
    now = await db.now()
    for name in ("created_at", "scheduled_for", "queued_at", "started_at", "died_at", "settled_at"):
        if letter[name] is not None:
            letter[name] = f"{moment(letter[name])} ({ago(letter[name], now)})"
    print_fields(letter)


def one_or_all(command: params.F) -> params.F:
    """The arguments of a verb that takes one dead letter or all that a filter finds."""
    for decorate in (
        click.option(
            "--wait/--no-wait",
            default=True,
            help="With --all: until it is done (the default), or leave it to the scheduler.",
        ),
        click.option(
            "--per-second",
            type=click.FloatRange(0, 100_000, min_open=True),
            metavar="N",
            help="With --all: at most so many a second.",
        ),
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Only say which it would be."),
        click.option("--definition", metavar="KEY", help="With --all: only of this kind."),
        click.option("--tenant", help="With --all: only of this tenant."),
        click.option("--all", "every", is_flag=True, help="All pending ones that fit."),
        click.option("--notes", help="Kept with the dead letter."),
        params.argument("job_id", parse=params.job_id, required=False),
    ):
        command = decorate(command)
    return command


@dead.command()
@one_or_all
@params.option("--payload", parse=params.payload, metavar="JSON|-", help="Replay with this one.")
@params.json_option
@with_database
async def replay(
    db: Session,
    /,
    job_id: UUID | None,
    payload: dict[str, Any] | None,
    notes: str | None,
    as_json: bool,
    **choice: Any,
) -> int:
    """Put a dead letter back in its lane, attempts starting afresh."""
    from fairlane.core import calls

    if payload is not None and job_id is None:
        raise click.UsageError("--payload goes with one ID", click.get_current_context())
    inputs_hash = None
    if payload is not None and job_id is not None:
        from fairlane.client.edited import replayed_with

        payload, inputs_hash = await replayed_with(
            db.send, job_id, payload, None, db.settings.payload_limit
        )
    return await settle(
        db,
        "replay",
        lambda id_: calls.replay(id_, payload, notes, inputs_hash=inputs_hash),
        notes,
        job_id,
        choice,
        as_json,
    )


@dead.command()
@one_or_all
@params.json_option
@with_database
async def resolve(
    db: Session, /, job_id: UUID | None, notes: str | None, as_json: bool, **choice: Any
) -> int:
    """Settle a dead letter: it has been dealt with."""
    from fairlane.core import calls

    return await settle(
        db, "resolve", lambda id_: calls.resolve(id_, notes), notes, job_id, choice, as_json
    )


@dead.command()
@one_or_all
@params.json_option
@with_database
async def ignore(
    db: Session, /, job_id: UUID | None, notes: str | None, as_json: bool, **choice: Any
) -> int:
    """Settle a dead letter: it does not matter."""
    from fairlane.core import calls

    return await settle(
        db, "ignore", lambda id_: calls.ignore(id_, notes), notes, job_id, choice, as_json
    )


@dead.command()
@params.argument("job_id", parse=params.job_id)
@params.json_option
@with_database
async def reopen(db: Session, /, job_id: UUID, as_json: bool) -> None:
    """Take back that a dead letter was resolved or ignored."""
    from fairlane.core import calls

    await db.change(calls.reopen_dead_letter(job_id))
    if as_json:
        print_json(await the_letter(db, job_id))
    else:
        click.echo("pending again")


@dead.command()
@params.argument("job_id", parse=params.job_id)
@click.argument("assignee", required=False)
@click.option("--nobody", is_flag=True, help="Nobody looks after it.")
@params.json_option
@with_database
async def assign(
    db: Session, /, job_id: UUID, assignee: str | None, nobody: bool, as_json: bool
) -> None:
    """Say who looks after a dead letter."""
    from fairlane.core import calls

    if (assignee is None) != nobody:
        raise click.UsageError("give a name, or --nobody", click.get_current_context())
    await db.change(calls.assign_dead_letter(job_id, assignee))
    if as_json:
        print_json(await the_letter(db, job_id))
    else:
        click.echo("nobody's" if nobody else f"assigned to {assignee}")


async def settle(
    db: Session,
    action: str,
    verb: Callable[[UUID], Any],
    notes: str | None,
    job_id: UUID | None,
    choice: Mapping[str, Any],
    as_json: bool,
) -> int:
    """Do the verb to one dead letter, or to all that the filter finds."""
    from fairlane.cli.bulk import DONE, settle_all

    if (job_id is None) != choice["every"]:
        raise click.UsageError("give one ID, or --all with a filter", click.get_current_context())
    if job_id is None:
        return await settle_all(db, action, notes, choice, as_json)
    if any(choice[name] for name in ("tenant", "definition", "dry_run", "per_second")):
        raise click.UsageError(
            "--tenant, --definition, --dry-run and --per-second go with --all",
            click.get_current_context(),
        )
    await db.change(verb(job_id))
    if as_json:
        print_json(await the_letter(db, job_id))
    else:
        click.echo(DONE[action])
    return 0


async def the_letter(db: Session, job_id: UUID) -> dict[str, Any]:
    from fairlane.cli.shapes import dead_letter
    from fairlane.errors import JobNotFound

    rows = await db.fetch(f"{LETTERS} where l.id = $1", job_id)
    if not rows:
        raise JobNotFound(f"there is no dead letter {job_id}; see: fairlane dead list --status all")
    return dead_letter(rows[0])
