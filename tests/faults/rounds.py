"""One run from its plan to what came of it: played, looked through, told, and made small if it
fails."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

from faults.account import Account
from faults.checks import Violation, check
from faults.execute import execute
from faults.history import History
from faults.plan import Run
from faults.shrink import Shrinker
from faults.verdict import Verdict

BUILD = Path("build/faults")
Found = dict[str, list[Violation]]


def play(run: Run, shrink: float) -> Verdict:
    """`shrink`: minutes for making a failing one small."""
    print(f"seed {run.seed}: {len(run.workload)} operations, {len(run.faults)} faults", flush=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"run-{run.seed}.json").write_text(run.text())
    try:
        history = asyncio.run(execute(run, BUILD / f"seed-{run.seed}"))
        found = check(history)
        account = Account.of(run, history, found)
    except Exception as error:  # of the harness, not of the product: nothing was shown
        traceback.print_exception(error)
        return Verdict(broken_off=[f"seed {run.seed}: {error!r}"])
    _tell(account, history, found)
    if account.violations and shrink:
        asyncio.run(_shrunk(run, found, shrink * 60))
    return Verdict([account])


def _tell(account: Account, history: History, found: Found) -> None:
    print(
        f"seed {account.seed}: {account.operations} operations, {sum(account.fired.values())} of "
        f"{len(history.injected)} faults seen to work, {len(history.changes)} changes, "
        f"{len(history.bodies)} lines of bodies: {account.violations} violations",
        flush=True,
    )
    for name, violations in found.items():
        for violation in violations[:5]:
            print(f"\n{name}: {violation.words}")
            for event in violation.events[:8]:
                print(f"    {event}")


async def _shrunk(run: Run, found: Found, seconds: float) -> None:
    names = {name for name, violations in found.items() if violations}

    async def violated(run: Run) -> set[str]:
        return {name for name, some in check(await execute(run)).items() if some}

    shrinker = Shrinker(violated, names, seconds)
    small = await shrinker.shrink(run)
    path = BUILD / f"small-{small.seed}.json"
    path.write_text(small.text())
    print(f"\nafter {shrinker.replays} replays still failing: {len(small.workload)} operations,")
    for fault in small.faults:
        print(f"  at {fault.at:>7.2f} s  {fault.kind}, {fault.seconds:g} s (pick {fault.pick})")
    print(f"again: python -m faults --replay {path}")
