"""Any two verbs of the core at once, in every order that two sessions can take their steps.

Whatever the order: nobody deadlocks, the books balance, no job goes where it may not go, no gate
lets in more than it has places for, and what comes out is what one after the other would make.
docs/interleavings.md tells how it is done.
"""

import random
from collections.abc import AsyncIterator
from itertools import combinations_with_replacement

import pytest

from faults import summary
from faults.interleavings.stage import CHECKS, Stage, staged
from faults.interleavings.verbs import VERBS
from support.cluster import Cluster

PAIRS = [*combinations_with_replacement(VERBS, 2)]
SEED = "three sixes"
SAMPLE = random.Random(SEED).sample(PAIRS, 400)

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
    ("claim", "heartbeat", "heartbeat"),
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


@pytest.mark.slow
@pytest.mark.parametrize("first", VERBS)
async def test_two_verbs_at_once_are_as_one_after_the_other(first: str, stage: Stage) -> None:
    """Two schedules of some of the pairs, chosen by a die; its seed stands above."""
    wrong = [
        each for pair in SAMPLE if pair[0] == first for each in await stage.some(pair, SEED, 2)
    ]
    assert not wrong, the_first(wrong)


@pytest.mark.parametrize("what", ["keys", "ids"])
async def test_batches_that_name_the_same_in_another_order_do_not_cross(
    what: str, stage: Stage
) -> None:
    """They were inserted as they came: each batch held what the other one wanted next, and the
    database ended one of them. Now every batch asks for its keys and ids in one order."""
    wrong = await stage.every((f"enqueue {what}", f"enqueue {what} from behind"), switches=1)
    assert not wrong, the_first(wrong)


async def test_who_comes_to_prune_second_stands_back(stage: Stage) -> None:
    """It waited for rows that the first was deleting, and failed when it had waited long enough: a
    scheduler and a leader that tidied up at the same moment told of an error that was none."""
    wrong = await stage.every(("prune", "prune"), points=False)
    assert not wrong, the_first(wrong)


@pytest.mark.scene_long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", VERBS)
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


@pytest.mark.scene_long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", VERBS)
async def test_two_verbs_that_are_stopped_twice(first: str, stage: Stage) -> None:
    wrong = [
        each for pair in PAIRS if pair[0] == first for each in await stage.every(pair, switches=2)
    ]
    assert not wrong, the_first(wrong)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "verbs",
    [
        pytest.param(
            each,
            id=" + ".join(each),
            marks=pytest.mark.scene_long if nth % 3 else pytest.mark.scene,
        )
        for nth, each in enumerate(TRIPLES)
    ],
)
async def test_three_verbs_at_once_are_as_one_after_the_other(
    verbs: tuple[str, str, str], stage: Stage
) -> None:
    wrong = [
        *await stage.every(verbs, points=False),
        *await stage.some(verbs, SEED, 20),
    ]
    assert not wrong, the_first(wrong)
