"""The benchmarks of the ground floor: what the verbs cost inside PostgreSQL, in one table.

Each runs in scratch databases of its own beside the given one, so no data of yours are touched.
Times on a shared machine are noisy: the two sides of a comparison always take turns in one run,
and it is their ratio that is judged.
"""

import sys

import click

from fairlane.bench import (
    bulk,
    claim_flat,
    drain,
    enqueue,
    limits,
    live,
    memory,
    metrics,
    pages,
    progress_cost,
    recovery,
    triggers,
    worker,
)
from fairlane.bench.line import Line, as_json_text, as_table
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch

if sys.platform == "win32":
    from asyncio import run as _run
else:
    from uvloop import run as _run

USUAL = {
    "claim-flat": claim_flat.measure,
    "limits": limits.measure,
    "bulk": bulk.measure,
    "drain": drain.measure,
    "enqueue": enqueue.measure,
    "worker": worker.measure,
    "metrics": metrics.measure,
}
# These mostly wait, for minutes, and run only when they are asked for.
LONG = {
    "recovery": recovery.measure,
    "triggers": triggers.measure,
    "memory": memory.measure,
    "progress": progress_cost.measure,
    "pages": pages.measure,
    "live": live.measure,
}
BENCHMARKS = USUAL | LONG


def run(names: list[str], url: str, as_json: bool, *, quick: bool = False) -> int:
    """Run the named benchmarks, or the usual ones, and print one table; 1 if a bar was missed.

    `quick` loads a tenth of what `claim-flat` and `memory` otherwise load.
    """
    if unknown := [name for name in names if name not in BENCHMARKS]:
        say(f'benchmark "{unknown[0]}" is unknown; there are: {", ".join(BENCHMARKS)}')
        return 2
    lines = _run(_measure(names or list(USUAL), url, quick))
    click.echo(as_json_text(lines) if as_json else as_table(lines))
    return 1 if any(line.reached is False for line in lines) else 0


async def _measure(names: list[str], url: str, quick: bool) -> list[Line]:
    lines: list[Line] = []
    async with Scratch.beside(url) as scratch:
        for name in names:
            lines += await BENCHMARKS[name](scratch, quick)
    return lines
