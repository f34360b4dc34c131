"""`fairlane migrate`: brings the schema up to date."""

import asyncio

import click

from fairlane.cli.params import json_option
from fairlane.cli.render import print_json


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if there is something to do.")
@click.option("--sql", is_flag=True, help="Change nothing; print what would run.")
@json_option
def migrate(check: bool, sql: bool, as_json: bool) -> int:
    """Bring the schema up to date.

    It is safe to run from many places at once: one does the work, the others wait.
    """
    from fairlane import config
    from fairlane.core import migrate as core
    from fairlane.database import database
    from fairlane.errors import SchemaTooOld

    if check and sql:
        raise click.UsageError("give --check or --sql, not both", click.get_current_context())
    with database(config.load(), start=False) as url:
        if sql:
            click.echo(asyncio.run(core.sql(url)), nl=False)
            return 0
        if not check:
            names = asyncio.run(core.migrate(url))
        elif names := asyncio.run(core.pending(url)):
            if not as_json:
                raise SchemaTooOld(names)
            print_json({"pending": names})
            return 1

    if as_json:
        print_json({"pending" if check else "applied": names})
    else:
        click.echo(f"applied {', '.join(names)}" if names else "the schema is up to date")
    return 0
