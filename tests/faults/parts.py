"""What `make faults` and `make faults-long` are made of. Each part can be played by itself, when
the machine is free for it, and what came of it is kept until all are there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from faults import summary
from faults.bounds import BOUNDS
from faults.interleavings.verbs import VERBS
from faults.kinds import CALM, LASTS
from faults.lacking import lacking
from faults.plan import Run, planned
from faults.rounds import BUILD, play
from faults.verdict import Verdict

HERE = Path(__file__).parent
ATTACKS = HERE.parent / "attacks"
ORDERS, BROKEN = HERE / "test_interleavings.py", HERE / "test_broken_builds.py"
SCENE, LONG = "scene", "scene or scene_long"
ATTACK = f"slow or {LONG}"  # all of them: what `make test-long` runs is in the table too
ENOUGH = 1_000  # faults in the runs of a long one


@dataclass(frozen=True)
class Part:
    name: str
    play: Callable[[Verdict], Verdict]  # given what came of those before it
    is_run: bool = False


def quick(seed: int, rate: float, shrink: float) -> list[Part]:
    """Some minutes: every kind once, every bound once, a scene of every file."""
    return [
        _run("chaos", planned(seed, 62, _kinds(), gap=1.7, rate=rate), shrink),
        _run("calm", calm(seed + 1, 90, CALM, rate), shrink),
        Part("again", lambda before: _again(before, seed + 100, rate, shrink), is_run=True),
        _scenes("scenes", SCENE, HERE, ATTACKS),
    ]


def long(seed: int, rate: float, shrink: float) -> list[Part]:
    """About 45 minutes, a thousand faults in runs alone."""
    seeds = range(seed, seed + 5)
    return [
        *(_run(f"seed-{n}", planned(n, 290, _kinds(), gap=1.3, rate=rate), shrink) for n in seeds),
        _run("calm", calm(seed + 5, 180, CALM * 2, rate), shrink),
        Part("again", lambda before: _again(before, seed + 100, rate, shrink), is_run=True),
        _scenes("scenes", LONG, HERE, but=("interleavings", "broken_builds")),
        _scenes("orders", LONG, ORDERS, but=("stopped_twice",)),
        *(_scenes(f"twice-{nth + 1}", LONG, *some) for nth, some in enumerate(_twice())),
        _scenes("broken", "slow or scene_long", HERE / "test_mistakes.py", BROKEN),
        _scenes("attacks", ATTACK, ATTACKS),
    ]


def too_few(runs: Verdict) -> list[str]:
    """What all the runs of a long one came to, if that is less than it is run for."""
    if runs.fired >= ENOUGH:
        return []
    return [f"only {runs.fired} faults were seen to work in its runs; a long one has {ENOUGH:,}"]


def calm(seed: int, seconds: float, kinds: Sequence[str], rate: float) -> Run:
    """Each that has a bound, with the system to itself."""
    return planned(seed, seconds, kinds, gap=seconds, rate=rate / 2, is_calm=True)


def _kinds() -> list[str]:
    return [kind for kind in LASTS if kind not in lacking()]


def _run(name: str, run: Run, shrink: float) -> Part:
    return Part(name, lambda _: play(run, shrink), is_run=True)


def _again(before: Verdict, seed: int, rate: float, shrink: float) -> Verdict:
    """What found nothing to strike, for a worker that was just gone or a job that had just ended,
    has the system to itself now; and so has what was not measured."""
    came = Verdict()
    for nth in (seed, seed + 2):
        if kinds := (before + came).never_fired:
            run = planned(nth, 15 + 5 * len(kinds), kinds, gap=4.0, rate=rate)
            came += play(run, shrink)
        if bounds := (before + came).unjudged:
            again = [BOUNDS[each.name].kinds[0] for each in bounds]
            came += play(calm(nth + 1, 15 + 12 * len(again), again, rate), shrink)
    return came


def _twice() -> list[list[str]]:
    """Two halves, of some minutes each."""
    tests = [f"{ORDERS}::test_two_verbs_that_are_stopped_twice[{verb}]" for verb in VERBS]
    return [tests[0::2], tests[1::2]]


def _scenes(name: str, marker: str, *where: Path | str, but: tuple[str, ...] = ()) -> Part:
    """What needs a stage of its own."""

    def played(_: Verdict) -> Verdict:
        file = BUILD / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        words = ["-q", "-n", "2", "-m", marker, "-p", "faults.skips", *map(str, where)]
        words += ["-k", " and ".join(f"not {each}" for each in but)] if but else []
        environment = {
            **os.environ,
            summary.VARIABLE: str(file.absolute()),
            "PYTHONPATH": str(HERE.parent),
        }
        status = subprocess.run(
            [sys.executable, "-m", "pytest", *words], env=environment, check=False
        ).returncode
        told = summary.told(file)
        # A failure that nobody told of, or an end that is none: either way it shows nothing.
        is_told = status == 0 or (status == 1 and told.failed)
        broken_off = [] if is_told else [f"{name}: pytest ended with status {status}"]
        return Verdict([], told.scenes, told.failed, broken_off, told.lacking)

    return Part(name, played)
