"""`fairlane triggers`: what makes jobs by itself, on events and by the clock."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from fairlane.cli import params
from fairlane.cli.applying import wrong_call
from fairlane.cli.render import ago, clean, print_fields, print_json, print_more, print_table
from fairlane.cli.session import Session, actor, with_database

if TYPE_CHECKING:
    from fairlane.scheduler.trigger import Trigger


@click.group(no_args_is_help=False)
def triggers() -> None:
    """Rules that make jobs: on an event, or on a schedule in a time zone."""


def trigger_argument(command: params.F) -> params.F:
    return params.argument("trigger_id", parse=params.job_id)(command)


def json_object(text: str) -> Any:
    return params.NONE if text.lower() == "none" else params.payload(text)


def field_options(command: params.F) -> params.F:
    for decorate in (
        click.option("--jitter", "jitter_seconds", type=int, metavar="S", help="At most so late."),
        click.option("--overlap", type=click.Choice(["allow", "skip", "queue"])),
        click.option("--missed", type=click.Choice(["skip", "once", "all"])),
        click.option(
            *("--dedupe-window", "dedupe_window_seconds"),
            type=int,
            metavar="S",
            help="The same payload makes one job within it.",
        ),
        params.option(
            *("--payload", "payload_template"),
            parse=json_object,
            metavar="JSON|-",
            help='A template, like {"path": "{{event.path}}"}.',
        ),
        click.option("--version", metavar="V", help="The newest active one if not given."),
        click.option("--definition", "definition_key", metavar="KEY", help="What to run."),
        click.option("--timezone", metavar="ZONE", help="Like Europe/Berlin; UTC if not given."),
        click.option("--cron", "cron_expr", metavar="EXPR", help='Like "0 3 * * *".'),
        params.option(
            "--filter", parse=json_object, metavar="JSON|none", help='Like {"size": {"gte": 10}}.'
        ),
        click.option("--event", "event_name", metavar="NAME", help="Like provider.*."),
        click.option("--label", help="What people call it."),
    ):
        command = decorate(command)
    return command


@triggers.command("list")
@click.option("--tenant", metavar="T", help="Of one tenant.")
@click.option("--type", "trigger_type", type=click.Choice(["event", "schedule"]))
@params.page_options
@params.json_option
@with_database
async def list_triggers(
    db: Session,
    /,
    tenant: str | None,
    trigger_type: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List triggers, newest first."""
    from fairlane.cli.shapes import page
    from fairlane.scheduler import asking

    before = None if cursor is None else _cursor(cursor)
    found = await asking.triggers(
        db.conn, tenant, before=before, trigger_type=trigger_type, most=limit + 1
    )
    shown, following = found[:limit], None
    if len(found) > limit:
        following = str(shown[-1].id)
    if as_json:
        print_json(page([each.shape() for each in shown], following))
        return
    now = await db.now()
    print_table(
        ["ID", "TENANT", "LABEL", "ON", "RUNS", "STATE", "NEXT"],
        [
            [
                each.id,
                each.tenant or "-",
                each.label,
                each.event_name or f"{each.cron_expr} {each.timezone}",
                each.definition_key or each.chore,
                "enabled" if each.is_enabled else "paused",
                ago(each.next_at, now),
            ]
            for each in shown
        ],
        empty="no triggers; make one with: fairlane triggers create --help",
    )
    print_more(following)


def _cursor(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise wrong_call(f'"{text}" is no cursor of this list') from None


@triggers.command()
@trigger_argument
@params.json_option
@with_database
async def show(db: Session, /, trigger_id: UUID, as_json: bool) -> None:
    """Show one trigger and what came of it lately."""
    from fairlane.scheduler import asking, store

    trigger = await store.find(db.conn, trigger_id)
    if as_json:
        print_json(trigger.shape())
        return
    print_fields(trigger.shape())
    came = await asking.deliveries(db.conn, trigger, None, 10)
    if came:
        click.echo()
        await print_deliveries(db, [each for _, each in came])


@triggers.command()
@click.option("--tenant", metavar="T", required=True, help="Whose it is.")
@click.option("--paused", is_flag=True, help="It makes nothing until it is resumed.")
@field_options
@params.json_option
@with_database
async def create(db: Session, /, tenant: str, paused: bool, as_json: bool, **options: Any) -> None:
    """Make a trigger: --event NAME or --cron EXPR, and --definition KEY."""
    from fairlane.scheduler import store

    given = params.given_of(options)
    if ("event_name" in given) == ("cron_expr" in given):
        raise wrong_call("give --event NAME or --cron EXPR")
    if "definition_key" not in given:
        raise wrong_call("give --definition KEY")
    on = given.get("event_name") or f"at {given.get('cron_expr')}"
    given.setdefault("label", f"{given['definition_key']} {on}")
    async with db.conn.transaction():
        await act(db)
        made = await store.create(db.conn, tenant, {**given, "is_enabled": not paused})
    _print(made, as_json, "made")


@triggers.command("set")
@trigger_argument
@field_options
@params.json_option
@with_database
async def set_trigger(db: Session, /, trigger_id: UUID, as_json: bool, **options: Any) -> None:
    """Change a trigger."""
    await _change(db, trigger_id, params.changes_of(options), as_json, "changed")


@triggers.command()
@trigger_argument
@params.json_option
@with_database
async def pause(db: Session, /, trigger_id: UUID, as_json: bool) -> None:
    """Have a trigger make nothing until it is resumed."""
    await _change(db, trigger_id, {"is_enabled": False}, as_json, "paused")


@triggers.command()
@trigger_argument
@params.json_option
@with_database
async def resume(db: Session, /, trigger_id: UUID, as_json: bool) -> None:
    """Let a paused trigger go on; what it missed is not made up for."""
    await _change(db, trigger_id, {"is_enabled": True}, as_json, "resumed")


@triggers.command()
@trigger_argument
@params.json_option
@with_database
async def delete(db: Session, /, trigger_id: UUID, as_json: bool) -> None:
    """Take a trigger away."""
    from fairlane.scheduler import store

    async with db.conn.transaction():
        await act(db)
        gone = await store.delete(db.conn, trigger_id)
    _print(gone, as_json, "deleted")


async def _change(
    db: Session, trigger_id: UUID, changes: dict[str, Any], as_json: bool, done: str
) -> None:
    from fairlane.scheduler import store

    async with db.conn.transaction():
        await act(db)
        old = await store.find(db.conn, trigger_id)
        new = await store.change(db.conn, old, changes)
    _print(new, as_json, done)


async def act(db: Session) -> None:
    """The audit names who it was."""
    await db.conn.execute("select set_config('fairlane.actor', $1, true)", actor())


def _print(trigger: "Trigger", as_json: bool, done: str) -> None:
    if as_json:
        print_json(trigger.shape())
    else:
        click.echo(f"{done}: {trigger.id} {clean(trigger.name)}")


async def print_deliveries(db: Session, came: list[dict[str, Any]]) -> None:
    now = await db.now()
    print_table(
        ["WHEN", "FOR", "STATUS", "JOB", "ERROR"],
        [
            [
                ago(each["at"], now),
                each["event_id"] or ("by hand" if each["manual"] else each["scheduled_for"]),
                each["status"],
                each["job_id"],
                (each["error"] or {}).get("message", "-"),
            ]
            for each in came
        ],
        empty="nothing came of it yet",
    )
