"""`fairlane migrate`: brings the schema up to date."""

import asyncio
from collections.abc import Mapping

import click

from fairlane.cli.params import json_option
from fairlane.cli.render import print_json


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if there is something to do.")
@click.option("--plan", is_flag=True, help="Change nothing; say what would run and what it locks.")
@click.option("--sql", is_flag=True, help="Change nothing; print what would run.")
@json_option
def migrate(check: bool, plan: bool, sql: bool, as_json: bool) -> int:
    """Bring the schema up to date.

    It is safe to run from many places at once, and beside workers of the version before: one does
    the work, in one transaction, and the others wait.
    """
    from fairlane import config
    from fairlane.core import migrate as core
    from fairlane.database import database
    from fairlane.errors import SchemaTooOld

    if check + plan + sql > 1:
        raise click.UsageError("give one of --check, --plan and --sql", click.get_current_context())
    with database(config.load(), start=False) as url:
        if sql:
            click.echo(asyncio.run(core.sql(url)), nl=False)
            return 0
        if plan:
            return _show(asyncio.run(core.locks(url)), as_json)
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


# What each lock means for everybody else.
MEANING = {
    "access exclusive": "nobody reads or writes it",
    "row exclusive": "rows are written",
}


def _show(plan: dict[str, Mapping[str, str]], as_json: bool) -> int:
    if as_json:
        print_json({"pending": [{"name": name, "locks": dict(plan[name])} for name in plan]})
        return 0
    if not plan:
        click.echo("the schema is up to date")
    for name, locks in plan.items():
        click.echo(name if locks else f"{name}: locks nothing that is there")
        for table, mode in locks.items():
            click.echo(f"  {table}: {mode} ({MEANING.get(mode, 'nobody writes it')})")
    return 0
