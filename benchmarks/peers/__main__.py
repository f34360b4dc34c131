"""Runs every system in turn, several rounds, and prints medians and ratios.

    make bench-peers ARGS="--rounds 3 --jobs 20000"

Each system of each round is a process of its own with a database of its own. What is compared is
the ratio within a round: figures in jobs a second differ from minute to minute on a shared machine.
"""

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from fairlane.embedded import Embedded

SYSTEMS = ("fairlane", "pgqueuer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a server; without one, an embedded one for the run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    options = parser.parse_args()
    systems = options.systems.split(",")

    if options.url:
        run(options.url, options.rounds, options.jobs, systems)
        return
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as home:
        Path(home).chmod(0o755)  # another user runs the server where root runs this
        with Embedded(Path(home), {"shared_buffers": "512MB"}) as url:
            run(url, options.rounds, options.jobs, systems)


def run(url: str, count: int, jobs: int, systems: list[str]) -> None:
    rounds: list[dict[str, dict[str, float]]] = []
    for nth in range(count):
        rounds.append({})
        # Nobody is always first, or always last.
        for system in systems[nth % len(systems) :] + systems[: nth % len(systems)]:
            print(f"round {nth + 1}: {system}", file=sys.stderr)
            rounds[-1][system] = asyncio.run(measure(system, url, jobs))
    show(systems, rounds)


async def measure(system: str, url: str, jobs: int) -> dict[str, float]:
    name = f"bench_peers_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(url)
    await admin.execute(f'create database "{name}"')
    try:
        own = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        side = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"benchmarks.peers.{system}_side",
            own,
            str(jobs),
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await side.communicate()
        if side.returncode:
            sys.exit(f"{system} ended with status {side.returncode}")
        answer: dict[str, float] = json.loads(told)
        return answer
    finally:
        await admin.execute(f'drop database "{name}" with (force)')
        await admin.close()


def show(systems: list[str], rounds: list[dict[str, dict[str, float]]]) -> None:
    columns = ("bulk /s", "drain /s", "start p50 ms", "start p99 ms", "worker µs/job")
    print(f"{'':14}" + "".join(f"{column:>26}" for column in columns))
    for system in systems:
        cells = []
        for column in columns:
            figures = [done[system][column] for done in rounds]
            ratio = median(
                done["fairlane"][column] / done[system][column]
                for done in rounds
                if "fairlane" in done
            )
            spread = f"{min(figures):,.4g}..{max(figures):,.4g}"
            cells.append(f"{median(figures):,.4g} ({spread}) x{ratio:.2f}")
        print(f"{system:14}" + "".join(f"{cell:>26}" for cell in cells))
    print("figure (lowest..highest) xR: R is Fairlane's figure over this one, median of the rounds")


if __name__ == "__main__":
    main()
