"""Runs every system in turn, several rounds, and prints medians and ratios.

    make bench-peers ARGS="--rounds 3 --jobs 20000"

Each system of each round is a process of its own with a database of its own. What is compared is
the ratio within a round: figures in jobs a second differ from minute to minute on a shared machine.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.one import Failed, Figures, run_one
from benchmarks.peers.table import show

from fairlane.embedded import Embedded

# The share of the jobs that each gets. A rate needs no more, and a slow one would take minutes.
SYSTEMS = {"fairlane": 1.0, "pgqueuer": 1.0, "awa": 1.0, "chancy": 1.0, "procrastinate": 0.2}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="a server; without one, an embedded one for the run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="some of them, with commas")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one may take")
    options = parser.parse_args()
    systems = options.systems.split(",")
    if unknown := [system for system in systems if system not in SYSTEMS]:
        parser.error(f'system "{unknown[0]}" is unknown; there are: {", ".join(SYSTEMS)}')

    if options.url:
        return run(options.url, options.rounds, options.jobs, systems, options.limit)
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as home:
        Path(home).chmod(0o755)  # another user runs the server where root runs this
        with Embedded(Path(home), {"shared_buffers": "512MB"}) as url:
            return run(url, options.rounds, options.jobs, systems, options.limit)


def run(url: str, count: int, jobs: int, systems: list[str], limit: float) -> int:
    rounds: list[dict[str, Figures | Failed]] = []
    for nth in range(count):
        rounds.append({})
        # Nobody is always first, or always last.
        turn = nth % len(systems)
        for system in systems[turn:] + systems[:turn]:
            load = os.getloadavg()[0]
            print(f"round {nth + 1}: {system} (load average {load:.1f})", file=sys.stderr)
            found = asyncio.run(run_one(system, url, int(jobs * SYSTEMS[system]), limit))
            if isinstance(found, Failed):
                print(f"round {nth + 1}: {system} {found.why}", file=sys.stderr)
            rounds[-1][system] = found
    return show(systems, rounds)


if __name__ == "__main__":
    sys.exit(main())
