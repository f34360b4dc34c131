"""`fairlane bench`: what this machine and its database can do."""

import click

from fairlane.cli.params import json_option


@click.command()
@click.argument("names", nargs=-1)
@click.option("--quick", is_flag=True, help="With less data: a look, not a measurement.")
@json_option
def bench(names: tuple[str, ...], quick: bool, as_json: bool) -> int:
    """Measure what the verbs cost on this machine.

    NAMES choose benchmarks; all of them run if none is given.
    """
    from fairlane import bench as benchmarks
    from fairlane import config
    from fairlane.database import database

    with database(config.load(), start=True) as url:
        return benchmarks.run(list(names), url, as_json, quick=quick)
