"""Which scenarios there are, for whom, and the usual runs.

They are `make bench`, `bench-peers`, `bench-bars` and `bench-more`.
"""

from dataclasses import dataclass, replace

from benchmarks.peers.stage import Terms
from benchmarks.peers.systems import FLOOR, ON_POSTGRESQL, OURS, PEERS, SYSTEMS

FLOORS = [FLOOR, "floor-bare"]
ALL = [OURS, *FLOORS, *PEERS]
RIVALS = [OURS, FLOOR, "pgqueuer"]


@dataclass(frozen=True)
class Scenario:
    systems: list[str]  # that can be measured so; the others know no tenants, or would fail
    repeat: bool = True  # every round, or only the first
    limit: float = 120.0  # seconds


SCENARIOS = {
    "enqueue": Scenario([OURS, FLOOR, *PEERS]),
    "drain": Scenario(ALL),
    "drain-2": Scenario(ALL),
    "work": Scenario(RIVALS),
    "work-2": Scenario(RIVALS),
    "start": Scenario([OURS, FLOOR, *PEERS]),
    "start-busy": Scenario([OURS, FLOOR, *PEERS], repeat=False),
    "noisy": Scenario([OURS, *PEERS], limit=300),
    "cost": Scenario(ALL, repeat=False),
    "steady": Scenario([OURS, FLOOR, *PEERS], repeat=False, limit=180),
    "payload": Scenario(RIVALS, repeat=False),
    "long-jobs": Scenario([OURS, "pgqueuer"], repeat=False),
    "limits": Scenario([OURS], repeat=False, limit=300),
    "tenants": Scenario([OURS], repeat=False, limit=600),
    "backlog": Scenario([OURS], repeat=False, limit=900),
    "history": Scenario([OURS], repeat=False, limit=1_800),
    "flat": Scenario([OURS], limit=900),
    "snapshot": Scenario(RIVALS, repeat=False, limit=3_600),
    "snapshot-none": Scenario(RIVALS, repeat=False, limit=3_600),
    "memory": Scenario([OURS], repeat=False, limit=1_200),
}


@dataclass(frozen=True)
class Plan:
    """A run: each scenario with its systems, and how many rounds of those that repeat."""

    steps: dict[str, list[str]]
    rounds: int
    flood: int = 20_000
    once: tuple[str, ...] = ()  # though they repeat elsewhere: here it would take too long

    def repeats(self, scenario: str) -> bool:
        return SCENARIOS[scenario].repeat and scenario not in self.once


def _of(names: list[str], systems: list[str]) -> dict[str, list[str]]:
    return {
        name: [system for system in SCENARIOS[name].systems if system in systems] for name in names
    }


PLANS = {
    # Ours against the floor, in minutes.
    "ours": Plan(
        _of(
            ["enqueue", "drain", "drain-2", "work", "work-2", "start", "noisy", "cost"],
            [OURS, *FLOORS],
        )
        | _of(["payload", "long-jobs"], [OURS, FLOOR])
        | _of(["limits", "tenants"], [OURS]),
        rounds=3,
    ),
    # Beside all peers. A's flood is short: B waits for all of it where there is no fair order.
    "peers": Plan(
        _of(["enqueue", "drain", "drain-2", "start", "start-busy", "noisy", "cost"], ALL),
        rounds=2,
        flood=4_000,
        once=("noisy",),
    ),
    # What decides the bars, and no more.
    "bars": Plan(
        _of(["drain"], [OURS, *FLOORS, *ON_POSTGRESQL])
        | _of(["work", "work-2"], RIVALS)
        | _of(["drain-2", "noisy", "flat", "memory", "snapshot", "snapshot-none"], [OURS])
        | _of(["start"], [OURS, *PEERS]),
        rounds=3,
    ),
    # Each in one round: what takes long, or decides no bar, beside the nearest rivals.
    "more": Plan(
        _of(["start-busy", "steady", "payload", "long-jobs"], RIVALS)
        | _of(["limits", "tenants", "backlog", "history"], [OURS]),
        rounds=1,
    ),
}


def terms_of(
    system: str, *, quick: bool, flood: int, snapshot_minutes: float, pace: float
) -> Terms:
    terms = Terms(
        jobs=SYSTEMS[system].jobs,
        seconds=1.5,
        steady=60.0,
        starts=400,
        flood=flood,
        snapshot=snapshot_minutes * 60,
        scale=1.0,
        pace=pace,
    )
    if not quick:
        return terms
    return replace(
        terms,
        jobs=max(terms.jobs // 20, 100),
        seconds=0.3,
        steady=3.0,
        starts=30,
        flood=min(flood, 400),
        snapshot=min(terms.snapshot, 4.0),
        scale=0.01,
    )
