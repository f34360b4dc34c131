"""`python -m faults`: runs with faults, and what must hold of them. See docs/faults.md."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from faults.broken import BUILDS
from faults.checks import Violation, check
from faults.execute import execute
from faults.kinds import CALM, LASTS
from faults.plan import Run, Shape, planned
from faults.shrink import Shrinker
from faults.verdict import VARIABLE, Outcome, Verdict

BUILD = Path("build/faults")


def main() -> int:
    words = _words()
    # What is cut complains; that is what it is here for.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    logging.getLogger("fairlane").setLevel(logging.CRITICAL)
    verdict = Verdict()
    for run in _runs(words):
        _run(run, verdict, words.shrink)
    # A fault may find nothing to strike: a worker that was just gone, a job that had just ended.
    for seed in (words.seed + 100, words.seed + 101):
        if (kinds := verdict.never_fired) and not words.replay and not words.broken:
            again = planned(seed, 15 + 5 * len(kinds), kinds, gap=4.0, rate=words.rate)
            _run(again, verdict, words.shrink)
    verdict.save()
    if words.scenes:
        marker = "faults or faults_long" if words.long else "faults"
        before = len(_told())
        verdict.scenes_failed = _scenes(marker)
        verdict.scenes = _told()[before:]
    print(verdict.text())
    return verdict.status


def _run(run: Run, verdict: Verdict, shrink: float) -> None:
    try:
        outcome = asyncio.run(_tried(run))
    except Exception as error:  # of the harness, not of the product: nothing was shown
        traceback.print_exception(error)
        verdict.broken_off.append(f"seed {run.seed}: {error!r}")
        return
    verdict.outcomes.append(outcome)
    _tell(outcome)
    if outcome.violations and shrink:
        asyncio.run(_shrunk(outcome, shrink * 60))


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="seeds, one after the other")
    parser.add_argument("--seconds", type=float, default=90, help="of each round")
    parser.add_argument("--gap", type=float, default=2.0, help="seconds from fault to fault")
    parser.add_argument("--rate", type=float, default=40, help="operations a second")
    parser.add_argument("--only", help="kinds of faults, with commas; see faults/kinds.py")
    parser.add_argument("--calm", action="store_true", help="one fault at a time: measures bounds")
    parser.add_argument("--broken", default="", help="a build of faults/broken.py, to be caught")
    parser.add_argument("--replay", type=Path, help="a run as it was printed")
    parser.add_argument(
        "--shrink", type=float, default=10, help="minutes for a failing run; 0: off"
    )
    parser.add_argument("--scenes", action="store_true", help="the scenes of tests/faults as well")
    parser.add_argument("--quick", action="store_true", help="some minutes")
    parser.add_argument("--long", action="store_true", help="about 45 minutes, 1,000 faults")
    return parser.parse_args()


def _runs(words: argparse.Namespace) -> list[Run]:
    if words.replay:
        return [Run.of(words.replay.read_text())]
    kinds = words.only.split(",") if words.only else list(LASTS)
    if unknown := sorted(set(kinds) - set(LASTS)):
        sys.exit(f"no such fault: {unknown[0]}; there are: {', '.join(LASTS)}")
    if words.quick:
        chaos = planned(words.seed, 80, kinds, gap=2.0, rate=words.rate)
        return [chaos, _calm(words.seed + 1, 90, words.rate)]
    if words.long:
        rounds = range(words.seed, words.seed + 7)
        runs = [planned(seed, 290, kinds, gap=1.7, rate=words.rate) for seed in rounds]
        return [*runs, _calm(words.seed + 7, 200, words.rate)]
    seeds = range(words.seed, words.seed + words.rounds)
    if words.broken:
        shape = Shape(broken=words.broken, workers=2, supervised=0, pooled=0, schedulers=1)
        kinds = list(BUILDS[words.broken].faults)
        short = {"gap": words.gap, "rate": words.rate, "shape": shape}
        return [planned(seed, words.seconds, kinds, **short) for seed in seeds]
    if words.calm:
        return [_calm(seed, words.seconds, words.rate) for seed in seeds]
    return [planned(seed, words.seconds, kinds, gap=words.gap, rate=words.rate) for seed in seeds]


def _calm(seed: int, seconds: float, rate: float) -> Run:
    """Each that has a bound, with the system to itself."""
    return planned(seed, seconds, CALM, gap=seconds, rate=rate / 2, steady=True)


async def _tried(run: Run) -> Outcome:
    print(f"seed {run.seed}: {len(run.workload)} operations, {len(run.faults)} faults", flush=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"run-{run.seed}.json").write_text(run.text())
    history = await execute(run, BUILD / f"seed-{run.seed}")
    return Outcome(run, history, check(history))


async def _shrunk(outcome: Outcome, seconds: float) -> None:
    names = {name for name, found in outcome.found.items() if found}

    async def violated(run: Run) -> set[str]:
        return {name for name, found in check(await execute(run)).items() if found}

    shrinker = Shrinker(violated, names, seconds)
    small = await shrinker.shrink(outcome.run)
    path = BUILD / f"small-{small.seed}.json"
    path.write_text(small.text())
    print(
        f"\nafter {shrinker.replays} replays, what still fails: {len(small.workload)} operations,"
    )
    for fault in small.faults:
        print(f"  at {fault.at:>7.2f} s  {fault.kind}, {fault.seconds:g} s (pick {fault.pick})")
    print(f"again: python -m faults --replay {path}")


def _tell(outcome: Outcome) -> None:
    history = outcome.history
    worked = sum(each.worked for each in history.injected)
    print(
        f"seed {outcome.run.seed}: {len(history.calls)} calls, {worked} of "
        f"{len(history.injected)} faults seen to work, {len(history.changes)} changes, "
        f"{len(history.bodies)} lines of bodies: {outcome.violations} violations",
        flush=True,
    )
    for name, found in outcome.found.items():
        for violation in found[:5]:
            _tell_violation(name, violation)


def _tell_violation(name: str, violation: Violation) -> None:
    print(f"\n{name}: {violation.words}")
    for event in violation.events[:8]:
        print(f"    {event}")


def _scenes(marker: str) -> bool:
    """The scenes that need a stage of their own; whether one failed."""
    faults = Path(__file__).parent
    folders = [str(faults), str(faults.parent / "attacks")]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", marker, *folders]
    status = subprocess.run(command, check=False).returncode
    return status not in (0, 5)  # 5: there are none


def _told() -> list[dict[str, Any]]:
    """What has been written to the summary so far."""
    path = os.environ.get(VARIABLE)
    if not path or not Path(path).exists():
        return []
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
