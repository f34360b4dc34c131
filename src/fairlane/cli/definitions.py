"""`fairlane definitions`: what may run."""

from typing import Any

import click

from fairlane.cli import defining, params
from fairlane.cli.applying import carry_out, file_options
from fairlane.cli.queues import delays
from fairlane.cli.render import ago, or_none, print_fields, print_json, print_table
from fairlane.cli.session import Session, actor, with_database


@click.group(no_args_is_help=False)
def definitions() -> None:
    """The kinds of jobs that may run."""


def version_option(command: params.F) -> params.F:
    help_text = "The newest active one if not given."
    return click.option("--version", metavar="V", help=help_text)(command)


@definitions.command("list")
@click.option("--all", "every", is_flag=True, help="Also those that are paused.")
@params.json_option
@with_database
async def list_definitions(db: Session, /, every: bool, as_json: bool) -> None:
    """List definitions, newest version first."""
    from fairlane.cli.shapes import definition, page

    rows = await db.fetch(
        "select * from fairlane.definition where is_active or $1"
        " order by key, version_order desc, created_at desc",
        every,
    )
    if as_json:
        print_json(page([definition(row) for row in rows]))
        return
    print_table(
        ["KEY", "VERSION", "EXECUTOR", "QUEUE", "TIMEOUT", "TRIES", "STATE", "DESCRIPTION"],
        [
            [
                row["key"],
                row["version"],
                row["executor"],
                row["queue"],
                f"{row['timeout_seconds']}s" if row["timeout_seconds"] else "queue's",
                row["max_attempts"] or "queue's",
                "active" if row["is_active"] else "paused",
                row["description"],
            ]
            for row in rows
        ],
        empty="no definitions; define one with @app.job and run a worker with --app, "
        "or write a file and: fairlane definitions apply FILE",
    )


@definitions.command()
@click.argument("key")
@version_option
@params.json_option
@with_database
async def show(db: Session, /, key: str, version: str | None, as_json: bool) -> None:
    """Show one definition."""
    await print_definition(db, key, version, as_json)


@definitions.command()
@file_options
@params.json_option
@with_database
async def apply(
    db: Session, /, file: str, dry_run: bool, yes: bool, form: str | None, as_json: bool
) -> None:
    """Bring definitions to what a file says: all of it, or none if anything in it is wrong."""
    from fairlane.definitions import apply

    written = await defining.read(db, file, form)
    planned = await apply.plan(db.conn, written)
    await carry_out(
        planned,
        lambda: apply.apply(db.conn, written, planned=planned, actor=actor()),
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


def limit_options(command: params.F) -> params.F:
    for decorate in (
        click.option("--description", help="What it does."),
        click.option("--dead-letter/--no-dead-letter", default=None, help="When out of attempts."),
        params.option(
            "--starts-per-minute", parse=params.limit(1), metavar="N|none", help="Over all tenants."
        ),
        params.option(
            "--max-running-per-tenant", parse=params.limit(), metavar="N|none", help="At once."
        ),
        params.option(
            "--max-running", parse=params.limit(), metavar="N|none", help="Over all tenants."
        ),
        params.option(
            "--retry-delays", parse=delays_or_none, metavar="S,S,...|none", help="Seconds."
        ),
        params.option(
            "--max-attempts", parse=params.limit(1), metavar="N|none", help="Of new jobs."
        ),
        params.option(
            *("--timeout", "--timeout-seconds", "timeout_seconds"),
            parse=params.limit(1),
            metavar="S|none",
            help="For one attempt.",
        ),
        click.option("--queue", metavar="Q", help="Where new jobs go."),
    ):
        command = decorate(command)
    return command


def delays_or_none(text: str) -> Any:
    return params.NONE if text.lower() == "none" else delays(text)


@definitions.command("set")
@click.argument("key")
@version_option
@limit_options
@params.json_option
@with_database
async def set_definition(
    db: Session, /, key: str, version: str | None, as_json: bool, **options: Any
) -> None:
    """Change a definition while it is in use; `none` leaves a field to its queue.

    What code registers does not undo this; `reset` does.
    """
    await defining.change(db, key, version, params.changes_of(options), as_json)


@definitions.command()
@click.argument("key")
@version_option
@params.json_option
@with_database
async def reset(db: Session, /, key: str, version: str | None, as_json: bool) -> None:
    """Let go of what was set over the code's word."""
    from fairlane.definitions import apply

    changed = await apply.reset(db.conn, key, version, actor=actor())
    defining.print_outcome(changed, as_json)


@definitions.command()
@click.argument("key")
@version_option
@params.json_option
@with_database
async def pause(db: Session, /, key: str, version: str | None, as_json: bool) -> None:
    """Refuse new jobs and start none that wait; what runs goes on."""
    await defining.change(db, key, version, {"is_active": False}, as_json)


@definitions.command()
@click.argument("key")
@version_option
@params.json_option
@with_database
async def resume(db: Session, /, key: str, version: str | None, as_json: bool) -> None:
    """Let a paused definition go on; what waited starts within a minute."""
    version = version or await defining.paused_version(db, key)
    await defining.change(db, key, version, {"is_active": True}, as_json)


@definitions.command()
@click.argument("key")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Rows.")
@params.json_option
@with_database
async def history(db: Session, /, key: str, limit: int, as_json: bool) -> None:
    """Show who changed a definition, and what."""
    from fairlane.cli.shapes import page
    from fairlane.errors import DefinitionNotFound

    rows = await db.fetch(
        "select at, actor, action, target as key, detail from fairlane.audit"
        " where target = $1 and action like 'definition.%' order by id desc limit $2",
        key,
        limit,
    )
    if not rows:
        raise DefinitionNotFound(f'no change of a definition "{key}" is known')
    if as_json:
        print_json(page(rows))
        return
    now = await db.now()
    print_table(
        ["WHEN", "WHO", "VERSION", "WHAT"],
        [
            [
                ago(row["at"], now),
                row["actor"],
                row["detail"].get("version", "1"),
                defining.in_words(row["action"], row["detail"]),
            ]
            for row in rows
        ],
        empty="",
    )


async def print_definition(db: Session, key: str, version: str | None, as_json: bool) -> None:
    from fairlane.definitions.rows import find
    from fairlane.definitions.shape import to_shape

    shown = to_shape(await find(db.conn, key, version))
    if as_json:
        print_json(shown)
        return
    limits = ("max_running", "max_running_per_tenant", "starts_per_minute")
    print_fields(shown | {name: or_none(shown[name]) for name in limits})
