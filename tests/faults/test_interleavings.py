"""Any two verbs of the core at once, in every order that two sessions can take their steps.

Whatever the order: nobody deadlocks, the books balance, no job goes where it may not go, no gate
lets in more than it has places for, and what comes out is what one after the other would make.
docs/interleavings.md tells how it is done.
"""

from collections.abc import AsyncIterator
from itertools import combinations_with_replacement

import pytest

from faults import summary
from faults.interleavings.stage import CHECKS, Stage, staged
from faults.interleavings.verbs import VERBS
from support.cluster import Cluster

FIRST = [pytest.param(name, id=name) for name in VERBS]
PAIRS = [*combinations_with_replacement(VERBS, 2)]

# Three who meet at one gate, one job, one key, one worker, one share.
TRIPLES = [
    ("claim", "claim two", "finish"),
    ("claim", "finish", "cancel running"),
    ("claim", "rescue", "finish late"),
    ("claim", "cancel queued", "sweep"),
    ("claim", "set tenant", "finish two"),
    ("claim", "lift limit", "enqueue"),
    ("claim", "pause", "resume"),
    ("claim two", "stop worker", "rescue"),
    ("rescue", "rescue", "promote"),
    ("rescue", "heartbeat late", "finish late"),
    ("finish", "fail", "cancel running"),
    ("finish", "hand back", "canceled"),
    ("finish", "park stuck", "set limit"),
    ("enqueue fresh key", "enqueue fresh key", "enqueue, undone"),
    ("enqueue keyed", "cancel keyed", "enqueue keyed"),
    ("enqueue again", "finish", "enqueue again"),
    ("enqueue", "sweep", "cancel unswept"),
    ("enqueue many", "sweep", "claim, undone"),
    ("replay", "resolve", "replay"),
    ("replay", "sweep", "claim"),
    ("fire due", "fire due", "sweep"),
    ("dispatch", "dispatch", "emit"),
    ("retry old", "prune", "sweep"),
    ("set plan", "set tenant", "claim"),
    ("fail many", "finish two", "cancel running"),
]


@pytest.fixture(scope="module")
async def stage(cluster: Cluster, template: str) -> AsyncIterator[Stage]:
    async with staged(cluster, template, sessions=3) as found:
        yield found
    summary.tell(
        "interleavings",
        injected=found.schedules,
        operations=found.steps,
        invariants=CHECKS,
        violations=len(found.violations),
    )


def the_first(wrong: list[str]) -> str:
    return "\n".join([f"{len(wrong)} schedules went wrong", *wrong[:8]])


@pytest.mark.parametrize("first", FIRST)
async def test_two_verbs_at_once_are_as_one_after_the_other(first: str, stage: Stage) -> None:
    """A few schedules of each pair, chosen by a die whose seed stands here."""
    wrong = [
        each
        for pair in PAIRS
        if pair[0] == first
        for each in await stage.some(pair, "three sixes", 1)
    ]
    assert not wrong, the_first(wrong)


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", FIRST)
async def test_two_verbs_in_every_order(first: str, stage: Stage) -> None:
    """Every order of calls and commits, and every one that stops a verb once on its way."""
    wrong = [
        each
        for pair in PAIRS
        if pair[0] == first
        for each in (
            *await stage.every(pair, points=False),
            *await stage.every(pair, switches=1),
        )
    ]
    assert not wrong, the_first(wrong)


@pytest.mark.faults_long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", FIRST)
async def test_two_verbs_that_are_stopped_twice(first: str, stage: Stage) -> None:
    wrong = [
        each for pair in PAIRS if pair[0] == first for each in await stage.every(pair, switches=2)
    ]
    assert not wrong, the_first(wrong)


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("verbs", TRIPLES, ids=" + ".join)
async def test_three_verbs_at_once_are_as_one_after_the_other(
    verbs: tuple[str, str, str], stage: Stage
) -> None:
    wrong = [
        *await stage.every(verbs, points=False),
        *await stage.some(verbs, "three sixes", 20),
    ]
    assert not wrong, the_first(wrong)
