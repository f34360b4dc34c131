"""`fairlane alerts rules`, `set`, `test`, `channels`, `channel`: what is watched, who is told."""

from typing import Any

import click

from fairlane.cli import params
from fairlane.cli.alerts import alerts, print_all, print_one
from fairlane.cli.session import Session, with_database

SEVERITY = click.Choice(["info", "warning", "critical"])


@alerts.command()
@params.json_option
@with_database
async def rules(db: Session, /, as_json: bool) -> None:
    """List what is watched for."""
    from fairlane import alerts as shown

    rows = await db.fetch(shown.RULES, None)
    columns = ["name", "threshold", "unit", "for_seconds", "cooldown_seconds", "severity"]
    print_all(rows, [*columns, "is_enabled", "description"], as_json, empty="no rules")


@alerts.command("set")
@click.argument("name")
@click.option("--threshold", type=click.FloatRange(0), help="It fires above this.")
@click.option("--for-seconds", type=click.IntRange(0, 604_800), help="For so long.")
@click.option("--clear-seconds", type=click.IntRange(0, 604_800), help="Gone for so long: over.")
@click.option("--cooldown-seconds", type=click.IntRange(0, 604_800), help="Between reminders.")
@click.option("--window-seconds", type=click.IntRange(1, 604_800), help="How far it looks back.")
@click.option("--severity", type=SEVERITY)
@click.option("--channels", help="Names with commas; `all` for every one that fits.")
@click.option("--scope", help="Patterns of subjects, with commas.")
@click.option("--on/--off", "is_enabled", default=None, help="Whether it is looked at.")
@params.json_option
@with_database
async def set_rule(db: Session, /, name: str, as_json: bool, **options: Any) -> None:
    """Change a rule."""
    from fairlane import alerts as shown
    from fairlane.core import calls

    if options["channels"] is not None:
        named = options["channels"]
        options["channels"] = params.NONE if named == "all" else named.split(",")
    if options["scope"] is not None:
        options["scope"] = options["scope"].split(",")
    await db.change(calls.set_alert_rule(name, params.changes_of(options)))
    (row,) = await db.fetch(shown.RULES, name)
    print_one(row, as_json)


@alerts.command()
@click.argument("name", metavar="RULE")
@params.json_option
@with_database
async def test(db: Session, /, name: str, as_json: bool) -> None:
    """Send a test by the channels of a rule."""
    from fairlane import alerts as shown
    from fairlane.core import calls

    rows = await db.change(calls.test_alert(name))
    print_all(
        [{each: row[each] for each in shown.TOLD} for row in rows],
        ["channel", "job_id", "error"],
        as_json,
        empty="no channel takes this rule",
    )


@alerts.command()
@params.json_option
@with_database
async def channels(db: Session, /, as_json: bool) -> None:
    """List where notifications go."""
    from fairlane import alerts as shown

    rows = await db.fetch(shown.CHANNELS, None)
    columns = ["name", "kind", "least_severity", "is_enabled", "settings"]
    print_all(rows, columns, as_json, empty="no channels")


@alerts.command()
@params.argument("name", parse=params.new_name)
@click.option("--url", help="A webhook: where to post.")
@click.option("--allow-private", is_flag=True, help="The URL may be in a private network.")
@click.option("--sign-with", help="The secret that signs; without it, the installation's key.")
@click.option("--to", multiple=True, help="A mail: an address; may be given again.")
@click.option("--least-severity", type=SEVERITY, help="Nothing below this.")
@click.option("--on/--off", "is_enabled", default=None)
@params.json_option
@with_database
async def channel(
    db: Session,
    /,
    name: str,
    url: str | None,
    allow_private: bool,
    sign_with: str | None,
    to: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Add a webhook or a mail, or change one."""
    from fairlane import alerts as shown
    from fairlane.core import calls

    changes = params.given_of(options)
    if url is not None:
        settings: dict[str, Any] = {"url": url, "allow_private": allow_private}
        if sign_with:
            settings["sign_with"] = sign_with
        changes |= {"kind": "webhook", "settings": settings}
    elif to:
        changes |= {"kind": "mail", "settings": {"to": list(to)}}
    if "kind" in changes:
        shown.check_channel(changes["kind"], changes["settings"])
    await db.change(calls.set_alert_channel(name, changes))
    (row,) = await db.fetch(shown.CHANNELS, name)
    print_one(row, as_json)
