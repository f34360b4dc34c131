"""`fairlane alerts`: what is wrong, who has seen it, who is told."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import click

from fairlane.cli import params
from fairlane.cli.render import ago, print_fields, print_json, print_table
from fairlane.cli.session import Session, with_database

STATES = ["open", "pending", "firing", "acknowledged", "silenced", "resolved"]


@click.group(no_args_is_help=False)
def alerts() -> None:
    """What is wrong: see it, acknowledge it, silence it, say who is told."""


@alerts.command("list")
@click.option("--state", type=click.Choice(STATES), help="Without: open ones and the past.")
@click.option("--rule", help="Of this rule alone.")
@params.page_options
@params.json_option
@with_database
async def list_alerts(
    db: Session,
    /,
    state: str | None,
    rule: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List alerts, newest first."""
    from fairlane import alerts as shown
    from fairlane.cli.shapes import page

    after = None if cursor is None else _uuid(cursor)
    rows = await db.fetch(shown.ALERTS, state, rule, after, limit + 1)
    more = len(rows) > limit
    rows = rows[:limit]
    if as_json:
        print_json(page(rows, str(rows[-1]["id"]) if more else None))
        return
    now = await db.now()
    print_table(
        ["ID", "STATE", "SEVERITY", "RULE", "SINCE", "WHAT"],
        [
            [
                row["id"],
                row["state"],
                row["severity"],
                row["rule"],
                ago(row["since"], now),
                row["summary"],
            ]
            for row in rows
        ],
        empty="no alerts",
    )


@alerts.command()
@params.argument("alert_id", parse=lambda text: _uuid(text))
@click.option("--note", help="What you are doing about it.")
@params.json_option
@with_database
async def ack(db: Session, /, alert_id: UUID, note: str | None, as_json: bool) -> None:
    """Acknowledge an alert: nobody is reminded of it any more."""
    from fairlane import alerts as shown
    from fairlane.core import calls

    await db.change(calls.acknowledge_alert(alert_id, note))
    (row,) = await db.fetch(shown.ALERT, alert_id)
    print_one(row, as_json)


@alerts.command()
@params.option("--until", parse=params.moment, metavar="TIME|+2h", help="When it ends.")
@click.option("--rule", default="*", show_default=True, help="Its name; * is anything.")
@click.option("--subject", default="*", show_default=True, help="A pattern; * is anything.")
@click.option("--reason", required=True, help="Why; it is shown and audited.")
@params.json_option
@with_database
async def silence(
    db: Session, /, until: Any, rule: str, subject: str, reason: str, as_json: bool
) -> None:
    """Tell nobody of what fits, for a while."""
    from fairlane import alerts as shown
    from fairlane.cli.session import value_of
    from fairlane.core import calls

    if until is None:
        raise click.UsageError("a silence ends: give --until", click.get_current_context())
    end = await db.now() + until if isinstance(until, timedelta) else until
    made = value_of(await db.change(calls.silence_alerts(rule, subject, end, reason)))
    (row,) = await db.fetch(shown.SILENCES, made)
    print_one(row, as_json)


@alerts.command()
@params.json_option
@with_database
async def silences(db: Session, /, as_json: bool) -> None:
    """List silences that hold."""
    from fairlane import alerts as shown

    rows = await db.fetch(shown.SILENCES, None)
    columns = ["id", "rule", "subject", "until", "reason", "created_by"]
    print_all(rows, columns, as_json, empty="no silences")


@alerts.command()
@params.argument("silence_id", parse=lambda text: _uuid(text))
@params.json_option
@with_database
async def unsilence(db: Session, /, silence_id: UUID, as_json: bool) -> None:
    """End a silence."""
    from fairlane.core import calls

    await db.change(calls.end_silence(silence_id))
    print_one({"id": silence_id}, as_json)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ValueError(f'"{text}" is not an id; see: fairlane alerts list') from None


def print_one(row: dict[str, Any], as_json: bool) -> None:
    print_json(row) if as_json else print_fields(row)


def print_all(rows: list[dict[str, Any]], columns: list[str], as_json: bool, *, empty: str) -> None:
    from fairlane.cli.shapes import page

    if as_json:
        print_json(page(rows))
        return
    names = [name.upper().replace("_", " ") for name in columns]
    print_table(names, [[row[name] for name in columns] for row in rows], empty=empty)
