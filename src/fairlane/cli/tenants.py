"""`fairlane tenants`: who may run how much."""

from typing import Any

import click

from fairlane.cli import params
from fairlane.cli.render import ago, or_none, print_fields, print_json, print_more, print_table
from fairlane.cli.session import Session, with_database


@click.group(no_args_is_help=False)
def tenants() -> None:
    """Customers: their plans, limits of their own, pauses."""


@tenants.command("list")
@params.page_options
@params.json_option
@with_database
async def list_tenants(db: Session, /, limit: int, cursor: str | None, as_json: bool) -> None:
    """List tenants with the limits that hold for them and what they have going on."""
    from fairlane.cli.shapes import page

    rows = await db.fetch(
        "select * from fairlane.tenants where slug > $1 order by slug limit $2",
        cursor or "",
        limit + 1,
    )
    found = rows[:limit]
    following = found[-1]["slug"] if len(rows) > limit else None
    if as_json:
        print_json(page(found, following))
        return
    print_table(
        ["TENANT", "PLAN", "WEIGHT", "RUNNING", "LIMIT", "QUEUED", "SCHEDULED", "STATE"],
        [
            [
                tenant["slug"],
                tenant["plan"],
                or_none(tenant["weight"]),
                tenant["running"],
                or_none(tenant["max_running"]),
                tenant["queued"],
                tenant["scheduled"],
                "paused" if tenant["paused_at"] else "active",
            ]
            for tenant in found
        ],
        empty="no tenants; create one with: fairlane tenants create SLUG",
    )
    print_more(following)


@tenants.command()
@click.argument("slug")
@params.json_option
@with_database
async def show(db: Session, /, slug: str, as_json: bool) -> None:
    """Show one tenant."""
    await print_tenant(db, slug, as_json)


def limit_options(command: params.F) -> params.F:
    """What a tenant may have of its own; `none` goes back to its plan's."""
    for decorate in (
        click.option("--backlog-policy", type=click.Choice(["warn", "reject"])),
        params.option(
            "--max-backlog", parse=params.limit(), metavar="N|none", help="Live jobs it may have."
        ),
        params.option(
            "--starts-per-minute", parse=params.limit(1), metavar="N|none", help="Its rate."
        ),
        params.option(
            "--max-running", parse=params.limit(), metavar="N|none", help="Running at once."
        ),
        params.option(
            "--weight", parse=params.weight, metavar="W|none", help="Its part of the slots."
        ),
        click.option("--name", help="How people call it."),
    ):
        command = decorate(command)
    return command


@tenants.command()
@params.argument("slug", parse=params.new_name)
@click.option("--plan", default="free", show_default=True)
@limit_options
@params.json_option
@with_database
async def create(
    db: Session, /, slug: str, plan: str, name: str | None, as_json: bool, **limits: Any
) -> None:
    """Add a tenant."""
    from fairlane.core import calls

    await db.change(calls.create_tenant(slug, plan, name or "", params.given_of(limits)))
    await print_tenant(db, slug, as_json)


@tenants.command("set")
@click.argument("slug")
@click.option("--plan")
@limit_options
@params.json_option
@with_database
async def set_tenant(db: Session, /, slug: str, as_json: bool, **options: Any) -> None:
    """Change a tenant; `none` takes a limit of its own away."""
    from fairlane.core import calls

    await db.change(calls.set_tenant(slug, params.changes_of(options)))
    await print_tenant(db, slug, as_json)


@tenants.command()
@click.argument("slug")
@params.json_option
@with_database
async def pause(db: Session, /, slug: str, as_json: bool) -> None:
    """Start nothing more of a tenant; what runs goes on."""
    from fairlane.core import calls

    await db.change(calls.pause_tenant(slug))
    await print_tenant(db, slug, as_json)


@tenants.command()
@click.argument("slug")
@params.json_option
@with_database
async def resume(db: Session, /, slug: str, as_json: bool) -> None:
    """Let a paused tenant go on."""
    from fairlane.core import calls

    await db.change(calls.resume_tenant(slug))
    await print_tenant(db, slug, as_json)


async def print_tenant(db: Session, slug: str, as_json: bool) -> None:
    # Refuses an unknown one in the words of every verb.
    await db.fetch("select fairlane.tenant_named($1)", slug)
    (row,) = await db.fetch("select * from fairlane.tenants where slug = $1", slug)
    if as_json:
        print_json(row)
        return
    shown = dict(row)
    now = await db.now()
    for name in ("weight", "max_running", "starts_per_minute", "max_backlog"):
        own = " (its own)" if name in row["overrides"] else ""
        shown[name] = f"{or_none(row[name])}{own}"
    for name in ("paused_at", "created_at", "updated_at"):
        shown[name] = row[name] and ago(row[name], now)
    print_fields({name: value for name, value in shown.items() if name != "overrides"})
