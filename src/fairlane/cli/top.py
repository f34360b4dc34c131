"""`fairlane top`: queues, tenants, workers and rates, live."""

import asyncio
import sys
from typing import Any

import click

from fairlane.cli.params import json_option
from fairlane.cli.session import Session, with_database


@click.command()
@click.option(
    "--every",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks; rates are told of this time.",
)
@click.option(
    "--sort",
    type=click.Choice(["due", "running", "time", "name"]),
    default="due",
    show_default=True,
    help="Which tenants come first.",
)
@click.option("--once", is_flag=True, help="Print one page and exit; so it is without a terminal.")
@json_option
def top(every: float, sort: str, once: bool, as_json: bool) -> None:
    """Show what goes on: queues, tenants, workers, rates. Press q to leave."""
    if once or as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_once(every=every, sort=sort, as_json=as_json)
    else:
        _follow(every, sort)


@with_database
async def print_once(db: Session, /, every: float, sort: str, as_json: bool) -> None:
    """Two looks, since a rate is the difference of two."""
    from fairlane.cli.render import print_json, terminal_width
    from fairlane.top.page import lines
    from fairlane.top.sample import take
    from fairlane.top.view import Looks

    looks = Looks()
    looks.add(await take(db, sort))
    await asyncio.sleep(every)
    look: dict[str, Any] = looks.add(await take(db, sort))
    if as_json:
        print_json(look)
        return
    for line in lines(look, across=terminal_width()):
        click.echo(line)


def _follow(every: float, sort: str) -> None:
    from fairlane import config
    from fairlane.database import database
    from fairlane.top.main import Top
    from fairlane.top.screen import Screen

    settings = config.load()

    async def follow(url: str) -> None:
        with Screen() as screen:
            await Top(url, settings, every, sort, screen).run()

    with database(settings, start=False) as url:
        asyncio.run(follow(url))
