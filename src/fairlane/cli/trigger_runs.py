"""`fairlane triggers fire`, `preview`, `deliveries` and `test`: what comes of a trigger."""

from typing import Any
from uuid import UUID

import click

from fairlane.cli import params
from fairlane.cli.applying import wrong_call
from fairlane.cli.render import ago, print_json, print_table
from fairlane.cli.session import Session, with_database
from fairlane.cli.triggers import act, print_deliveries, trigger_argument, triggers

__all__ = ["triggers"]  # the group, with these commands in it


@triggers.command()
@trigger_argument
@params.option("--data", parse=params.payload, metavar="JSON|-", help="Of the event it stands for.")
@click.option("--tenant", metavar="T", help="For a trigger that is for all.")
@params.json_option
@with_database
async def fire(
    db: Session, /, trigger_id: UUID, data: Any, tenant: str | None, as_json: bool
) -> None:
    """Run a trigger once, now; prints the job's id."""
    from fairlane.cli.shapes import job
    from fairlane.core import calls
    from fairlane.scheduler import asking, store

    async with db.conn.transaction():
        await act(db)
        trigger = await store.find(db.conn, trigger_id)
        made = await asking.fire(db.conn, trigger, data, trigger.tenant or tenant)
    if as_json:
        print_json(job((await db.send(calls.job(made)))[0]))
    else:
        click.echo(str(made))


@triggers.command()
@trigger_argument
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True)
@params.option("--after", parse=params.moment, metavar="TIME", help="From now on if not given.")
@params.json_option
@with_database
async def preview(db: Session, /, trigger_id: UUID, count: int, after: Any, as_json: bool) -> None:
    """Show the next times of a schedule, in UTC and in its own zone."""
    from datetime import timedelta
    from zoneinfo import ZoneInfo

    from fairlane.scheduler import asking, store

    trigger = await store.find(db.conn, trigger_id)
    if isinstance(after, timedelta):
        after = await db.now() + after
    times = await asking.preview(db.conn, trigger, count, after)
    if as_json:
        print_json({"times": times})
        return
    zone = ZoneInfo(trigger.timezone or "UTC")
    for each in times:
        local = each.astimezone(zone)
        click.echo(f"{each:%Y-%m-%d %H:%M} UTC   {local:%a %Y-%m-%d %H:%M %Z}")


@triggers.command()
@trigger_argument
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Rows.")
@params.json_option
@with_database
async def deliveries(db: Session, /, trigger_id: UUID, limit: int, as_json: bool) -> None:
    """Show what came of a trigger, newest first."""
    from fairlane.cli.shapes import page
    from fairlane.scheduler import asking, store

    trigger = await store.find(db.conn, trigger_id)
    found = [each for _, each in await asking.deliveries(db.conn, trigger, None, limit)]
    if as_json:
        print_json(page(found))
    else:
        await print_deliveries(db, found)


@triggers.command("test")
@trigger_argument
@click.option("--tenant", metavar="T", help="Whose events, for a trigger that is for all.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Events.")
@params.json_option
@with_database
async def test_trigger(
    db: Session, /, trigger_id: UUID, tenant: str | None, limit: int, as_json: bool
) -> None:
    """Hold a trigger against the latest events: what matches, why not, and what comes of it."""
    from fairlane.scheduler import store, trial

    trigger = await store.find(db.conn, trigger_id)
    whose = trigger.tenant or tenant
    if whose is None:
        raise wrong_call("the trigger is for all tenants; give --tenant T")
    tenant_id = await db.value("select (fairlane.tenant_named($1)).id", whose)
    found = await trial.against_latest(db.conn, trigger, tenant_id, limit)
    if as_json:
        print_json({**trial.summary(found), "items": found})
        return
    now = await db.now()
    print_table(
        ["WHEN", "EVENT", "NAME", "MATCHES", "WHAT COMES OF IT"],
        [
            [
                ago(each["emitted_at"], now),
                each["event_id"],
                each["event_name"],
                "yes" if each["matches"] else "no",
                each["reason"] or (each["error"] or {}).get("message") or each["payload"],
            ]
            for each in found
        ],
        empty="no events yet; emit one with: fairlane events emit NAME --tenant T",
    )
