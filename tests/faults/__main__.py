"""`python -m faults`: runs with faults, and what must hold of them. See docs/faults.md."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from pathlib import Path

from faults import parts
from faults.broken import BUILDS
from faults.kinds import CALM, LASTS
from faults.lacking import lacking
from faults.parts import Part, calm
from faults.plan import Run, Shape, planned
from faults.rounds import BUILD, play
from faults.table import table
from faults.verdict import Verdict


def main() -> int:
    words = _words()
    # What is cut complains; that is what it is here for.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    logging.getLogger("fairlane").setLevel(logging.CRITICAL)
    if words.quick or words.long:
        verdict = _in_parts(words)
    else:
        verdict = Verdict.sum(play(run, words.shrink) for run in _runs(words))
    print(table(verdict))
    return verdict.status


def _in_parts(words: argparse.Namespace) -> Verdict:
    make = parts.long if words.long else parts.quick
    all_of_it = make(words.seed, words.rate, words.shrink)
    folder = BUILD / make.__name__
    names = words.parts.split(",") if words.parts else [part.name for part in all_of_it]
    if unknown := sorted(set(names) - {part.name for part in all_of_it} - {"none"}):
        known = ", ".join(part.name for part in all_of_it)
        sys.exit(f"no such part: {unknown[0]}; there are: {known}, and none")
    if not words.parts:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for part in all_of_it:
        if part.name in names:
            came = part.play(_kept(all_of_it, folder))
            (folder / f"{part.name}.json").write_text(came.text())
    whole = _kept(all_of_it, folder)
    missing = [each for each in all_of_it if not (folder / f"{each.name}.json").exists()]
    why = [
        f"the part {each.name} is not there: python -m faults --{make.__name__} --parts {each.name}"
        for each in missing
    ]
    if words.long and not any(each.is_run for each in missing):
        why += parts.too_few(whole)
    return whole + Verdict(broken_off=why, lacking=lacking())


def _kept(all_of_it: list[Part], folder: Path) -> Verdict:
    files = [folder / f"{part.name}.json" for part in all_of_it]
    return Verdict.sum(Verdict.of(file.read_text()) for file in files if file.exists())


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
    parser.add_argument("--shrink", type=float, default=10, help="minutes for a failing run; or 0")
    parser.add_argument("--quick", action="store_true", help="some minutes, with scenes")
    parser.add_argument("--long", action="store_true", help="about 45 minutes, 1,000 faults")
    parser.add_argument(
        "--parts", help="of --quick or --long, with commas: those alone; none: the table alone"
    )
    return parser.parse_args()


def _runs(words: argparse.Namespace) -> list[Run]:
    if words.replay:
        return [Run.of(words.replay.read_text())]
    kinds = words.only.split(",") if words.only else [k for k in LASTS if k not in lacking()]
    if unknown := sorted(set(kinds) - set(LASTS)):
        sys.exit(f"no such fault: {unknown[0]}; there are: {', '.join(LASTS)}")
    seeds = range(words.seed, words.seed + words.rounds)
    if words.calm:
        chosen = [kind for kind in CALM if kind in kinds]
        return [calm(seed, words.seconds, chosen, words.rate) for seed in seeds]
    shape = Shape()
    if words.broken:
        kinds = list(BUILDS[words.broken].faults)
        shape = Shape(broken=words.broken, workers=2, supervised=0, pooled=0, schedulers=1)
    return [
        planned(seed, words.seconds, kinds, gap=words.gap, rate=words.rate, shape=shape)
        for seed in seeds
    ]


if __name__ == "__main__":
    sys.exit(main())
