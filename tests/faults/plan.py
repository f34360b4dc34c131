"""A run is a value: what is asked of the system, what is done to it, and when. The seed makes it,
and its text makes it again."""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

TENANTS = ("acme", "globex", "initech", "umbrella", "hooli", "wonka")
LIMITS = (10, 5, 3, 2, 1, 10)  # of running jobs, each
ROOMY = ("acme", "globex", "wonka")
SHARES = (30, 22, 14, 9, 5, 20)  # of what is asked, of a hundred


@dataclass(frozen=True)
class Op:
    """One thing that a client asks."""

    at: float  # seconds from the start
    kind: str
    tenant: str
    pick: int  # what it is about, where there is a choice


@dataclass(frozen=True)
class Fault:
    """One thing that is done to the system."""

    at: float
    kind: str
    pick: int  # whom it hits
    seconds: float  # how long, where it lasts


@dataclass(frozen=True)
class Shape:
    """What the system is made of."""

    lease: float = 3.0
    grace: float = 2.0
    workers: int = 2  # alone, each behind the proxy
    supervised: int = 2  # under one supervisor
    pooled: int = 1  # through PgBouncer
    schedulers: int = 2
    broken: str = ""  # on purpose: a name in faults.broken


@dataclass(frozen=True)
class Run:
    seed: int
    shape: Shape
    workload: tuple[Op, ...]
    faults: tuple[Fault, ...]
    is_calm: bool = False  # one fault at a time, in the order of the plan: its times are measured

    def text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def of(cls, text: str) -> "Run":
        value = json.loads(text)
        return cls(
            seed=value["seed"],
            shape=Shape(**value["shape"]),
            workload=tuple(Op(**each) for each in value["workload"]),
            faults=tuple(Fault(**each) for each in value["faults"]),
            is_calm=value["is_calm"],
        )

    def with_(self, **changes: Any) -> "Run":
        return replace(self, **changes)

    @property
    def seconds(self) -> float:
        """Until the last of it has begun."""
        times = [op.at for op in self.workload] + [fault.at for fault in self.faults]
        return max(times, default=0.0)


# What clients ask, and how often of a hundred.
OPERATIONS = {
    "library": 24,  # enqueue by the library, in a transaction of its own
    "own_id": 10,  # the same with an id that the caller chose, sent again when unknown
    "batch": 6,  # enqueue_many of five
    "transaction": 5,  # in the caller's transaction, that commits
    "rolled_back": 3,  # in one that does not
    "taken_id": 1,  # an id that another tenant's job has
    "by_http": 20,
    "dedupe": 8,
    "keyed": 6,  # with a concurrency key
    "later": 3,  # scheduled_for
    "long": 2,  # four seconds of work: longer than a lease
    "cancel": 3,
    "retry": 2,
    "priority": 3,  # of a job that may still wait
    "settle": 3,  # replay, resolve or ignore a dead letter
    "reopen": 1,  # one that was resolved or ignored
    "assign": 1,
    "event": 4,
    "read": 2,
}


def planned(
    seed: int,
    seconds: float,
    kinds: Sequence[str],
    *,
    gap: float,
    rate: float = 40.0,
    shape: Shape | None = None,
    is_calm: bool = False,
) -> Run:
    """The run of a seed: each kind of fault at least once, in an order of its own, a fault every
    `gap` seconds on average. A calm one has them in the order given, and some long
    job runs at any time."""
    dice = random.Random(seed)
    workload = tuple(_workload(dice, seconds, rate))
    if is_calm:
        times = range(int(seconds / 0.6))
        workload += tuple(Op(round(0.6 * n, 3), "long", dice.choice(ROOMY), n) for n in times)
    faults = tuple(_faults(dice, seconds, kinds, gap, shuffled=not is_calm))
    return Run(seed, shape or Shape(), workload, faults, is_calm)


def _workload(dice: random.Random, seconds: float, rate: float) -> Iterable[Op]:
    at = 0.0
    kinds, weights = list(OPERATIONS), list(OPERATIONS.values())
    while (at := at + dice.expovariate(rate)) < seconds:
        (kind,) = dice.choices(kinds, weights)
        (tenant,) = dice.choices(TENANTS, SHARES)
        yield Op(round(at, 3), kind, tenant, dice.randrange(10**6))


def _faults(
    dice: random.Random, seconds: float, kinds: Sequence[str], gap: float, *, shuffled: bool
) -> Iterable[Fault]:
    from faults.kinds import LASTS  # the nemesis knows how long each takes

    begin, end = 3.0, max(seconds - 2.0, 4.0)
    count = max(int((end - begin) / gap), len(kinds)) if kinds else 0
    chosen = list(kinds) + [dice.choice(list(kinds)) for _ in range(count - len(kinds))]
    if shuffled:
        dice.shuffle(chosen)
    step = (end - begin) / max(len(chosen), 1)
    if not shuffled:
        step -= sum(LASTS[kind][1] for kind in chosen) / max(len(chosen), 1)
    lasted = 0.0
    for nth, kind in enumerate(chosen):
        low, high = LASTS[kind]
        at = begin + step * (nth + dice.random() * (0.8 if shuffled else 0.2)) + lasted
        yield Fault(round(at, 3), kind, dice.randrange(10**6), round(dice.uniform(low, high), 2))
        # Who is to have the system to itself does not wait for the one before it to end.
        lasted += 0.0 if shuffled else high
