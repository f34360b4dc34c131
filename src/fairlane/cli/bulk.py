"""A verb for every pending dead letter that a filter finds, in bounded steps."""

import sys
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import click

from fairlane.cli.filters import check_names
from fairlane.cli.render import print_json, print_table
from fairlane.cli.session import Row, Session
from fairlane.errors import FairlaneError

STEP = 500

# What was there when the command began: a job that dies again meanwhile is not taken up again.
FOUND = """
  from fairlane.dead_letters
 where status = 'pending'
   and ($1::text is null or tenant = $1)
   and ($2::text is null or definition_key = $2)
   and died_at <= $3
"""


async def settle_all(
    db: Session,
    done: str,
    verb: Callable[[UUID], Any],
    choice: Mapping[str, Any],
    as_json: bool,
) -> int:
    await check_names(db, tenant=choice["tenant"], definition=choice["definition"])
    filters = (choice["tenant"], choice["definition"], await db.now())
    groups = await db.fetch(
        f"select tenant, definition_key, count(*) as jobs {FOUND} group by 1, 2 order by 1, 2",
        *filters,
    )
    matched = sum(group["jobs"] for group in groups)
    if choice["dry_run"]:
        preview(groups, matched, done, as_json)
        return 0
    if not as_json and not choice["yes"] and matched and at_terminal():
        preview(groups, matched, done, as_json)
        click.confirm("go on?", abort=True, err=True)

    settled, refused = await in_steps(db, verb, filters)
    if as_json:
        print_json({"matched": matched, "dry_run": False, "done": settled, "refused": refused})
    else:
        click.echo(f"{settled} {done}")
        for refusal in refused:
            click.echo(f"fairlane: {refusal['detail']}", err=True)
    return 1 if refused else 0


def at_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


async def in_steps(
    db: Session, verb: Callable[[UUID], Any], filters: tuple[Any, ...]
) -> tuple[int, list[dict[str, Any]]]:
    """Each dead letter in its own transaction: one that is refused holds up no other."""
    settled = 0
    refused: list[dict[str, Any]] = []
    last = UUID(int=0)
    while rows := await db.fetch(
        f"select id {FOUND} and id > $4 order by id limit {STEP}", *filters, last
    ):
        for row in rows:
            try:
                await db.change(verb(row["id"]))
                settled += 1
            except FairlaneError as error:
                refused.append({"id": row["id"], "detail": str(error)})
        last = rows[-1]["id"]
    return settled, refused


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
