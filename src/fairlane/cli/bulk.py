"""A verb for every pending dead letter that a filter finds: an operation for each tenant, carried
on by this command, or by whoever schedules."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import click

from fairlane.cli.filters import check_names
from fairlane.cli.render import print_json, print_table
from fairlane.cli.session import Row, Session

STEP = 50
DONE = {"replay": "replayed", "resolve": "resolved", "ignore": "ignored"}

FOUND = """
select tenant, definition_key, count(*) as jobs
  from fairlane.dead_letters
 where status = 'pending'
   and ($1::text is null or tenant = $1)
   and ($2::text is null or definition_key = $2)
 group by 1, 2
 order by 1, 2
"""


async def settle_all(
    db: Session, action: str, notes: str | None, choice: Mapping[str, Any], as_json: bool
) -> int:
    await check_names(db, tenant=choice["tenant"], definition=choice["definition"])
    groups = await db.fetch(FOUND, choice["tenant"], choice["definition"])
    matched = sum(group["jobs"] for group in groups)
    if choice["dry_run"]:
        preview(groups, matched, DONE[action], as_json)
        return 0
    if not as_json and not choice["yes"] and matched and at_terminal():
        preview(groups, matched, DONE[action], as_json)
        click.confirm("go on?", abort=True, err=True)

    operations = await begun(db, action, notes, groups, choice)
    if not choice["wait"]:
        return left_to_others(operations, matched, as_json)
    ended = [await carried_on(db, operation) for operation in operations]
    return told(ended, DONE[action], as_json)


async def begun(
    db: Session, action: str, notes: str | None, groups: list[Row], choice: Mapping[str, Any]
) -> list[Row]:
    """All of them or none: in one transaction."""
    from fairlane.core import calls

    wanted = {"definition_key": choice["definition"]} if choice["definition"] else {}
    found = []
    async with db.conn.transaction():
        for tenant in dict.fromkeys(group["tenant"] for group in groups):
            call = calls.create_operation(tenant, action, wanted, notes, choice["per_second"])
            found += await db.change(call)
    return found


async def carried_on(db: Session, operation: Row) -> Row:
    """Steps until it has ended; if this command dies, whoever schedules goes on with it."""
    import asyncpg

    from fairlane.core import calls

    while True:
        try:
            stepped = await db.send(calls.step_operation(operation["id"], STEP))
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            stepped = []
        [row] = stepped or await db.send(calls.operation(operation["id"]))
        if row["state"] != "running":
            return row
        if not stepped:
            await asyncio.sleep(0.1)  # another takes the step, or its time has not come


def left_to_others(operations: list[Row], matched: int, as_json: bool) -> int:
    from fairlane.cli.shapes import operation

    if as_json:
        shown = [operation(each) for each in operations]
        print_json({"matched": matched, "dry_run": False, "operations": shown})
        return 0
    for each in operations:
        click.echo(each["id"])
    click.echo("the scheduler carries on; see: fairlane operations list", err=True)
    return 0


def told(ended: list[Row], done: str, as_json: bool) -> int:
    refused = [failure for each in ended for failure in each["failures"]]
    total = {name: sum(each[name] for each in ended) for name in ("matched", "done", "failed")}
    if as_json:
        print_json(
            {
                "matched": total["matched"],
                "dry_run": False,
                "done": total["done"],
                "refused": refused,
            }
        )
    else:
        click.echo(f"{total['done']} {done}")
        for refusal in refused:
            click.echo(f"fairlane: {refusal['detail']}", err=True)
        if total["failed"] > len(refused):
            click.echo(f"fairlane: and {total['failed'] - len(refused)} more", err=True)
    for each in ended:
        if each["state"] != "done":
            why = each["error"] or "somebody stopped it"
            click.echo(f"fairlane: operation {each['id']} is {each['state']}: {why}", err=True)
    whole = all(each["state"] == "done" for each in ended)
    return 0 if whole and not total["failed"] else 1


def at_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def preview(groups: list[Row], matched: int, done: str, as_json: bool) -> None:
    if as_json:
        print_json({"matched": matched, "dry_run": True, "groups": groups})
        return
    print_table(
        ["TENANT", "DEFINITION", "DEAD LETTERS"],
        [list(group.values()) for group in groups],
        empty="none",
    )
    click.echo(f"{matched} would be {done}", err=True)
