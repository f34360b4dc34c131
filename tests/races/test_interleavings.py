"""Every two verbs, on the same tenant and jobs, in every order that two sessions can take.

Whatever the order: nobody deadlocks, the books balance, and what comes out is what one of the two
would have made of it after the other.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import combinations_with_replacement
from typing import Any

import pytest

from fairlane.errors import FairlaneError
from fairlane.ids import uuid7
from support.clock import Clock
from support.core import Core
from support.sessions import Session, interleave, orders, sessions
from support.world import World

pytestmark = pytest.mark.race

NEW = uuid7()

# These take what they find free and leave the rest to the next call.
STANDS_BACK: dict[str, Any] = {"claim": [], "rescue": 0, "promote": 0}

SERIAL = ((0, 0, 1, 1), (1, 1, 0, 0))

VERBS: dict[str, Callable[[World, Core], Awaitable[Any]]] = {
    "enqueue": lambda w, c: c.ask(w.tenant, w.kind, id=NEW),
    "enqueue again": lambda w, c: c.ask(w.tenant, w.kind, id=w.jobs["running"]),
    "claim": lambda w, c: c.claim(w.workers["other"], 1),
    "finish": lambda w, c: c.finish(w.leases["running"]),
    "finish two": lambda w, c: c.finish(w.leases["running"], w.leases["finishing"]),
    "finish late": lambda w, c: c.finish(w.leases["lost"]),
    "fail": lambda w, c: c.fail(w.leases["running"]),
    "fail for good": lambda w, c: c.fail(w.leases["running"], final=True),
    "snooze": lambda w, c: c.snooze(w.leases["running"], 0),
    "hand back": lambda w, c: c.hand_back(w.leases["running"]),
    "cancel running": lambda w, c: c.cancel(w.jobs["running"]),
    "cancel queued": lambda w, c: c.cancel(w.jobs["queued"]),
    "cancel due": lambda w, c: c.cancel(w.jobs["due"]),
    "cancel unswept": lambda w, c: c.cancel(w.jobs["unswept"]),
    "move queued": lambda w, c: c.set_priority(w.jobs["queued"], 1),
    "move unswept": lambda w, c: c.set_priority(w.jobs["unswept"]),
    "canceled": lambda w, c: c.canceled(w.leases["running"]),
    "rescue": lambda w, c: c.rescue(),
    "promote": lambda w, c: c.promote(),
    "sweep": lambda w, c: c.sweep(thorough=True),
    "replay": lambda w, c: c.replay(w.jobs["parked"]),
    "resolve": lambda w, c: c.resolve(w.jobs["parked"]),
    "limit": lambda w, c: c.limit_tenant(w.tenant, max_running=3),
    "unlimit": lambda w, c: c.a_definition(w.kind, max_attempts=2),
    "pause": lambda w, c: c.one("select fairlane.pause_tenant($1)", w.tenant),
    "stop worker": lambda w, c: c.one("select fairlane.stop_worker($1)", w.workers["alive"]),
}


@pytest.fixture(scope="module")
async def stage(cluster: Any, template: str) -> AsyncIterator[tuple[World, list[Session]]]:
    with cluster.fresh(template) as url, Clock.of(url) as clock:
        async with sessions(url, 3) as (first, second, third):
            yield await World.make(third, clock), [first, second]


def plain(world: World, verb: str, answer: Any) -> Any:
    """An answer as both orders would give it."""
    if isinstance(answer, FairlaneError):
        return type(answer).__name__
    if isinstance(answer, Exception):
        raise answer
    match verb:
        case "sweep":
            return None
        case "claim":
            return sorted(world.name(lease.job_id) for lease in answer)
        case "enqueue" | "enqueue again":
            return answer["status"], answer["deduplicated"]
        case "finish" | "finish two" | "finish late" | "hand back" if not answer:
            # It says of each job whether it was still this worker's; of the worker, by an error.
            return "LeaseLost"
        case _:
            return sorted(answer) if isinstance(answer, list) else answer


async def play(
    world: World, pair: list[Session], names: tuple[str, str], order: tuple[int, ...]
) -> tuple[Any, ...]:
    await world.restore()
    verbs = [lambda core, name=name: VERBS[name](world, core) for name in names]
    answers = await interleave(pair, verbs, order)
    got = [plain(world, name, answer) for name, answer in zip(names, answers, strict=True)]
    await world.core.assert_books_balance()
    return *got, await world.outcome()


async def alone(world: World, name: str) -> dict[str, Any]:
    await world.restore()
    await VERBS[name](world, world.core)
    return await world.outcome()


@pytest.mark.parametrize(
    ("first", "second"),
    [pytest.param(*pair, id=" + ".join(pair)) for pair in combinations_with_replacement(VERBS, 2)],
)
async def test_two_verbs_at_once_are_as_one_after_the_other(
    first: str, second: str, stage: tuple[World, list[Session]]
) -> None:
    world, pair = stage
    names = (first, second)
    serial = [await play(world, pair, names, order) for order in SERIAL]
    for order in orders():
        if order in SERIAL:
            continue
        got = await play(world, pair, names, order)
        allowed = [*serial]
        # Who finds everything in other hands stands back, and is then as good as not called.
        for place, verb in enumerate(names):
            if verb in STANDS_BACK and got[place] == STANDS_BACK[verb]:
                other = names[1 - place]
                allowed.append((*got[:2], await alone(world, other)))
        assert got in allowed, f"in the order {order}"
