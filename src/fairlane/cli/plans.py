"""`fairlane plans`: named sets of limits."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fairlane.cli import params
from fairlane.cli.render import ago, or_none, print_fields, print_json, print_table
from fairlane.cli.session import Session, with_database

F = TypeVar("F", bound=Callable[..., Any])

PLANS = """
select p.name, p.max_running, p.starts_per_minute, p.max_backlog, p.backlog_policy, p.weight,
       p.retention_days, p.updated_at,
       (select count(*) from fairlane.tenant t where t.plan = p.name) as tenants
  from fairlane.plan p
"""


@click.group(no_args_is_help=False)
def plans() -> None:
    """Named sets of limits that tenants are on."""


@plans.command("list")
@params.json_option
@with_database
async def list_plans(db: Session, /, as_json: bool) -> None:
    """List plans."""
    from fairlane.cli.shapes import page

    rows = await db.fetch(f"{PLANS} order by p.max_running nulls last, p.name")
    if as_json:
        print_json(page(rows))
        return
    print_table(
        ["PLAN", "RUNNING", "STARTS/MIN", "BACKLOG", "POLICY", "WEIGHT", "KEPT DAYS", "TENANTS"],
        [
            [
                row["name"],
                or_none(row["max_running"]),
                or_none(row["starts_per_minute"]),
                or_none(row["max_backlog"]),
                row["backlog_policy"],
                or_none(row["weight"]),
                row["retention_days"],
                row["tenants"],
            ]
            for row in rows
        ],
        empty="no plans",
    )


@plans.command()
@click.argument("name")
@params.json_option
@with_database
async def show(db: Session, /, name: str, as_json: bool) -> None:
    """Show one plan."""
    await print_plan(db, name, as_json)


def limit_options(command: F) -> F:
    for decorate in (
        click.option(
            "--retention-days", type=click.IntRange(1, 3650), metavar="N", help="History kept."
        ),
        params.option("--weight", parse=params.weight, metavar="W", help="The part of the slots."),
        click.option("--backlog-policy", type=click.Choice(["warn", "reject"])),
        params.option("--max-backlog", parse=params.limit(), metavar="N|none", help="Live jobs."),
        params.option(
            "--starts-per-minute", parse=params.limit(1), metavar="N|none", help="The rate."
        ),
        params.option(
            "--max-running", parse=params.limit(), metavar="N|none", help="Running at once."
        ),
    ):
        command = decorate(command)
    return command


@plans.command()
@params.argument("name", parse=params.new_name)
@limit_options
@params.json_option
@with_database
async def create(db: Session, /, name: str, as_json: bool, **options: Any) -> None:
    """Add a plan; what is not given is no limit."""
    from fairlane.core import calls
    from fairlane.errors import ValueRefused

    refuse_no_weight(options)
    if await db.fetch(f"{PLANS} where p.name = $1", name):
        raise ValueRefused(
            f'plan "{name}" is there already; change it with: fairlane plans set {name}'
        )
    await db.change(calls.set_plan(name, params.given_of(options)))
    await print_plan(db, name, as_json)


@plans.command("set")
@params.argument("name", parse=params.new_name)
@limit_options
@params.json_option
@with_database
async def set_plan(db: Session, /, name: str, as_json: bool, **options: Any) -> None:
    """Change a plan, or add one; it holds for its tenants at once."""
    from fairlane.core import calls

    refuse_no_weight(options)
    await db.change(calls.set_plan(name, params.changes_of(options)))
    await print_plan(db, name, as_json)


def refuse_no_weight(options: dict[str, Any]) -> None:
    if options["weight"] is params.NONE:
        raise click.UsageError("a plan has a weight; give one", click.get_current_context())


async def print_plan(db: Session, name: str, as_json: bool) -> None:
    await db.fetch("select fairlane.check_plan($1)", name)
    (row,) = await db.fetch(f"{PLANS} where p.name = $1", name)
    if as_json:
        print_json(row)
        return
    limits = ("max_running", "starts_per_minute", "max_backlog", "weight")
    print_fields(
        row
        | {limit: or_none(row[limit]) for limit in limits}
        | {"updated_at": ago(row["updated_at"], await db.now())}
    )
