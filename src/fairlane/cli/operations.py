"""`fairlane operations`: bulk actions, and how far they have come."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from fairlane.cli import params
from fairlane.cli.applying import wrong_call
from fairlane.cli.render import ago, moment, print_fields, print_json, print_more, print_table
from fairlane.cli.session import Session, with_database

if TYPE_CHECKING:
    from fairlane.core.calls import Call

STATES = ("running", "stopped", "done", "failed")

LIST = """
select * from fairlane.operations
 where ($1::text is null or tenant = $1)
   and ($2::text is null or state = $2)
   and ($3::uuid is null or id < $3)
 order by id desc limit $4
"""


@click.group(no_args_is_help=False)
def operations() -> None:
    """Bulk actions: one verb for many jobs, done in steps by whoever schedules."""


@operations.command("list")
@click.option("--tenant", metavar="T", help="Of one tenant.")
@click.option("--state", type=click.Choice(STATES), help="In this state.")
@params.page_options
@params.json_option
@with_database
async def list_operations(
    db: Session,
    /,
    tenant: str | None,
    state: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List operations, newest first."""
    from fairlane.cli.filters import check_names
    from fairlane.cli.shapes import operation, page

    await check_names(db, tenant=tenant)
    try:
        before = None if cursor is None else UUID(cursor)
    except ValueError:
        raise wrong_call(f'"{cursor}" is no cursor of this list') from None
    rows = await db.fetch(LIST, tenant, state, before, limit + 1)
    following = str(rows[limit - 1]["id"]) if len(rows) > limit else None
    shown = [operation(row) for row in rows[:limit]]
    if as_json:
        print_json(page(shown, following))
        return
    now = await db.now()
    print_table(
        ["ID", "WHEN", "TENANT", "ACTION", "STATE", "PROGRESS", "FAILED", "BY"],
        [
            [
                each["id"],
                ago(each["created_at"], now),
                *(each[name] for name in ("tenant", "action", "state")),
                progress(each),
                each["failed"],
                each["created_by"],
            ]
            for each in shown
        ],
        empty="no operations",
    )
    print_more(following)


def progress(operation: Mapping[str, Any]) -> str:
    """How many have had their turn, of how many."""
    if operation["state"] == "done":
        return str(operation["matched"])
    more = "+" if operation["at_least"] else ""
    return f"{operation['matched']} of {max(operation['estimate'], operation['matched'])}{more}"


operation_argument = params.argument("operation_id", parse=params.job_id)


@operations.command()
@operation_argument
@params.json_option
@with_database
async def show(db: Session, /, operation_id: UUID, as_json: bool) -> None:
    """Show an operation, and why it could not do what it could not."""
    from fairlane.core import calls
    from fairlane.errors import OperationNotFound

    rows = await db.send(calls.operation(operation_id))
    if not rows:
        raise OperationNotFound(
            f"operation {operation_id} is not there; see: fairlane operations list"
        )
    await tell(db, rows[0], as_json)


@operations.command()
@operation_argument
@params.json_option
@with_database
async def stop(db: Session, /, operation_id: UUID, as_json: bool) -> None:
    """End an operation where it is; what is done stays done."""
    from fairlane.core import calls

    await change(db, calls.stop_operation(operation_id), as_json)


@operations.command()
@operation_argument
@params.json_option
@with_database
async def resume(db: Session, /, operation_id: UUID, as_json: bool) -> None:
    """Have a stopped or failed operation go on from where it is."""
    from fairlane.core import calls

    await change(db, calls.resume_operation(operation_id), as_json)


async def change(db: Session, call: "Call", as_json: bool) -> None:
    from fairlane.cli.shapes import operation

    [row] = await db.change(call)
    if as_json:
        print_json(operation(row))
    else:
        click.echo(f"{row['state']}: {row['action']}, {progress(row)}")


async def tell(db: Session, row: Mapping[str, Any], as_json: bool) -> None:
    from fairlane.cli.shapes import operation

    shown = operation(row)
    if as_json:
        print_json(shown)
        return
    now = await db.now()
    for name in ("created_at", "updated_at", "ended_at"):
        if shown[name] is not None:
            shown[name] = f"{moment(shown[name])} ({ago(shown[name], now)})"
    del shown["at_least"]
    failures = shown.pop("failures")
    print_fields({**shown, "estimate": f"{row['estimate']}{'+' if row['at_least'] else ''}"})
    for failure in failures:
        click.echo(f"fairlane: {failure['detail']}", err=True)
