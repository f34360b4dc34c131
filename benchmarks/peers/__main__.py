"""Fairlane beside the floor and its peers: the same work, the same servers, the same run.

    make bench-peers ARGS="--scenarios drain,start --systems fairlane,pgqueuer --rounds 5"

Each scenario of each system is a process of its own with a database of its own, and the systems
take turns. What is compared is the ratio within a round: figures in jobs a second differ from
minute to minute on a shared machine. Results go to build/benchmarks as lines of JSON.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.peers import redis_server
from benchmarks.peers.crew import ROOT
from benchmarks.peers.environment import environment
from benchmarks.peers.job import calibrate
from benchmarks.peers.one import Failed, Servers, run_one
from benchmarks.peers.plan import PLANS, SCENARIOS, terms_of
from benchmarks.peers.systems import SYSTEMS
from benchmarks.report.lines import read
from benchmarks.report.text import as_text

from fairlane.embedded import Embedded

SETTINGS = {
    "shared_buffers": "512MB",
    # With the usual 1 GB, all that write at full speed wait for a checkpoint every half minute.
    "max_wal_size": "8GB",
    "shared_preload_libraries": "pg_stat_statements",
    # Counted only where a scenario asks for it.
    "pg_stat_statements.track": "none",
}


def main() -> int:
    options = _options()
    # Told to end, it still stops the servers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = options.to or _results()
    results.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlane-bench-")))
        home.chmod(0o755)  # another user runs the server where root runs this
        url = options.url or stack.enter_context(Embedded(home, SETTINGS))
        wanted = {SYSTEMS[system].on for systems in options.steps.values() for system in systems}
        redis = ""
        if "redis" in wanted:
            (folder := home / "redis").mkdir(exist_ok=True)
            redis = stack.enter_context(redis_server.redis_server(folder))
            if not redis:
                _say("no redis-server here: the systems on Redis are left out; install it to see")
        with results.open("w") as file:
            run(options, Servers(url, redis), file)
    _say(f"results: {os.path.relpath(results)}")
    found = read([results])
    print(as_text(found))
    return 1 if found.failures else 0


def run(options: argparse.Namespace, servers: Servers, file: Any) -> None:
    _write(file, {"environment": asyncio.run(environment(servers.url, servers.redis))})
    begun, pace = time.monotonic(), calibrate()
    for scenario, systems in options.steps.items():
        systems = [name for name in systems if servers.redis or SYSTEMS[name].on != "redis"]
        for nth in range(options.rounds if scenario in options.repeated else 1):
            # Nobody is always first, or always last.
            turn = nth % len(systems)
            for system in systems[turn:] + systems[:turn]:
                minutes, load = (time.monotonic() - begun) / 60, os.getloadavg()[0]
                word = f"{minutes:5.1f} min  {scenario}, round {nth + 1}: {system}"
                _say(f"{word} (load average {load:.1f})")
                if SYSTEMS[system].on == "redis":
                    redis_server.empty(servers.redis)
                terms = terms_of(
                    system,
                    quick=options.quick,
                    flood=options.flood,
                    snapshot_minutes=options.snapshot_minutes,
                    pace=pace,
                )
                limit = options.limit or SCENARIOS[scenario].limit
                found = asyncio.run(run_one(system, scenario, servers, terms, limit))
                line: dict[str, Any] = {"scenario": scenario, "system": system, "round": nth + 1}
                if isinstance(found, Failed):
                    _say(f"{word} {found.why}")
                    line["failed"] = found.why
                else:
                    line["figures"] = found
                _write(file, {**line, "quick": options.quick})


def _write(file: Any, line: dict[str, Any]) -> None:
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", nargs="?", choices=PLANS, default="peers")
    parser.add_argument("--scenarios", type=_some_of(SCENARIOS), help="with commas")
    parser.add_argument("--systems", type=_some_of(SYSTEMS), help="with commas")
    parser.add_argument("--rounds", type=int, help="of the scenarios that are repeated")
    parser.add_argument("--quick", action="store_true", help="tiny: a look, not a measurement")
    parser.add_argument("--flood", type=int, help="how many jobs of A come before B's")
    parser.add_argument("--snapshot-minutes", type=float, default=10)
    parser.add_argument("--limit", type=float, help="seconds that one may take")
    parser.add_argument("--url", help="a PostgreSQL server; without one, an embedded one")
    parser.add_argument("--to", type=Path, help="the file of results")
    options = parser.parse_args()
    plan = PLANS[options.plan]
    options.steps = {
        name: [
            system
            for system in SCENARIOS[name].systems
            if system in (options.systems or plan.steps.get(name, SCENARIOS[name].systems))
        ]
        for name in options.scenarios or plan.steps
    }
    options.repeated = [name for name in options.steps if plan.repeats(name)]
    for name, systems in options.steps.items():
        if not systems:
            able = ", ".join(SCENARIOS[name].systems)
            parser.error(f'scenario "{name}" has none of these systems; it is for: {able}')
    options.rounds = options.rounds or (1 if options.quick else plan.rounds)
    options.flood = options.flood or plan.flood
    return options


def _some_of(known: dict[str, Any]) -> Any:
    def chosen(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            there = ", ".join(known)
            raise argparse.ArgumentTypeError(f'"{unknown[0]}" is unknown; there are: {there}')
        return names

    return chosen


def _results() -> Path:
    at = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return ROOT / "build" / "benchmarks" / f"{at}.jsonl"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
