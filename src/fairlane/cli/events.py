"""`fairlane events`: what was emitted, and what came of it."""

from typing import Any
from uuid import UUID

import click

from fairlane.cli import params
from fairlane.cli.applying import wrong_call
from fairlane.cli.render import ago, print_fields, print_json, print_more, print_table
from fairlane.cli.session import Session, actor, with_database


@click.group(no_args_is_help=False)
def events() -> None:
    """Facts that applications tell; triggers make jobs of them."""


@events.command("list")
@click.option("--tenant", metavar="T", help="Of one tenant.")
@click.option("--name", help="Of this name.")
@params.page_options
@params.json_option
@with_database
async def list_events(
    db: Session,
    /,
    tenant: str | None,
    name: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List events, newest first."""
    from fairlane.cli.shapes import page
    from fairlane.scheduler import asking

    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise wrong_call(f'"{cursor}" is no cursor of this list')
    which = None if tenant is None else await _tenant(db, tenant)
    before = None if cursor is None else int(cursor)
    found = await asking.events(db.conn, which, before, name, limit + 1)
    following = str(found[limit - 1]["seq"]) if len(found) > limit else None
    shown = [asking.event_shape(row) for row in found[:limit]]
    if as_json:
        print_json(page(shown, following))
        return
    now = await db.now()
    print_table(
        ["WHEN", "ID", "TENANT", "NAME", "STATUS", "DATA"],
        [
            [ago(each["emitted_at"], now), *(each[name] for name in COLUMNS), each["data"]]
            for each in shown
        ],
        empty="no events; emit one with: fairlane events emit NAME --tenant T",
    )
    print_more(following)


COLUMNS = ("id", "tenant", "name", "status")


@events.command()
@click.argument("event_id")
@click.option("--tenant", metavar="T", help="Needed where several have an event of this id.")
@params.json_option
@with_database
async def show(db: Session, /, event_id: str, tenant: str | None, as_json: bool) -> None:
    """Show an event and what came of it."""
    await _show(db, event_id, tenant or await _whose(db, event_id), as_json)


@events.command()
@click.argument("name")
@click.option("--tenant", metavar="T", required=True)
@params.option("--data", parse=params.payload, metavar="JSON|-", help="{} if not given.")
@click.option("--id", "event_id", help="The same id again is the same event.")
@params.json_option
@with_database
async def emit(
    db: Session, /, name: str, tenant: str, data: Any, event_id: str | None, as_json: bool
) -> None:
    """Emit an event; prints its id."""
    from fairlane.core import calls

    event = {"tenant": tenant, "name": name, "data": data or {}, "id": event_id}
    [row] = await db.send(calls.emit([{**event, "emitted_by": actor()}]))
    if as_json:
        await _show(db, row["id"], tenant, True)
    else:
        click.echo(row["id"])


@events.command()
@click.argument("event_id")
@click.option("--tenant", metavar="T", required=True)
@click.option(
    *("--trigger", "triggers"),
    type=click.UUID,
    multiple=True,
    metavar="ID",
    help="To this one alone; may be given more than once.",
)
@click.option("--failed", is_flag=True, help="Only to triggers that could make nothing of it.")
@click.option("--id", "new_id", help="The new event's; the same id again is the same resend.")
@params.json_option
@with_database
async def resend(
    db: Session,
    /,
    event_id: str,
    tenant: str,
    triggers: tuple[UUID, ...],
    failed: bool,
    new_id: str | None,
    as_json: bool,
) -> None:
    """Send an event again, to the triggers as they are now; prints the new event's id."""
    from fairlane.core import calls

    only = list(triggers) or None
    call = calls.resend(tenant, event_id, new_id, triggers=only, failed=failed, emitted_by=actor())
    [row] = await db.send(call)
    if as_json:
        await _show(db, row["id"], tenant, True)
    else:
        click.echo(row["id"])


async def _whose(db: Session, event_id: str) -> str:
    """The tenant that has an event of this id; an id that is given is the tenant's own."""
    from fairlane.scheduler import asking

    slugs = await asking.tenants_with(db.conn, event_id)
    if not slugs:
        raise click.ClickException(f'there is no event "{event_id}"; see: fairlane events list')
    if len(slugs) > 1:
        raise wrong_call(f'{", ".join(slugs)} have an event "{event_id}"; add --tenant')
    return slugs[0]


async def _tenant(db: Session, slug: str) -> Any:
    return await db.value("select (fairlane.tenant_named($1)).id", slug)


async def _show(db: Session, event_id: str, tenant: str, as_json: bool) -> None:
    from fairlane.scheduler import asking

    found = await asking.event(db.conn, await _tenant(db, tenant), event_id)
    if found is None:
        raise click.ClickException(f'tenant "{tenant}" has no event "{event_id}"')
    if as_json:
        print_json(found)
        return
    came = found.pop("deliveries")
    print_fields(found)
    if came:
        click.echo()
        print_table(
            ["TRIGGER", "STATUS", "JOB", "ERROR"],
            [
                [
                    each["trigger_label"] or each["trigger_id"],
                    each["status"],
                    each["job_id"],
                    (each["error"] or {}).get("message", "-"),
                ]
                for each in came
            ],
            empty="",
        )
