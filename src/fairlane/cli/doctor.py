"""`fairlane doctor`: is all well, and what to do where it is not."""

import asyncio
import dataclasses

import click

from fairlane.cli.params import json_option
from fairlane.cli.render import clean, print_json, print_table


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Say whether all is well, and what to do if not.

    Looks at database, schema, settings, vacuum, clock and stuck things; exits 1 on trouble.
    """
    from fairlane import config
    from fairlane.database import database
    from fairlane.doctor import Check, Verdict, examine, settings_in_force
    from fairlane.errors import DatabaseUnavailable

    settings = config.load()
    try:
        with database(settings, start=False) as url:
            checks = asyncio.run(examine(url))
    except DatabaseUnavailable as error:
        said, _, step = str(error).partition("; ")
        checks = [Check("database", Verdict.FAIL, said, step)]
    failed = any(check.verdict is Verdict.FAIL for check in checks)
    in_force = settings_in_force(settings)

    if as_json:
        print_json(
            {
                "ok": not failed,
                "checks": [dataclasses.asdict(check) for check in checks],
                "settings": [dataclasses.asdict(setting) for setting in in_force],
            }
        )
        return int(failed)

    print_table(
        ["SETTING", "VALUE", "FROM"],
        [[setting.name, setting.value, setting.source] for setting in in_force],
        empty="",
    )
    click.echo()
    for check in checks:
        click.echo(f"{check.verdict:<4}  {check.name}: {clean(check.found)}")
        if check.next_step:
            click.echo(f"      -> {clean(check.next_step)}")
    return int(failed)
