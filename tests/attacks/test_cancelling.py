"""A caller may go away at any wait of its call. Nothing of it is left for the next one (S9)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from api.calls import ON_EVENT
from api.world import Caller, World, world_of
from attacks.cancelling import cancelled_at
from attacks.cast import TENANTS
from attacks.conftest import NO_STREAMS
from attacks.tally import tallied
from support.core import Core
from support.pgbouncer import pgbouncer

CANARY = "canary-of-acme-7d1f"
MOST = 400  # waits of one call; there are far fewer
READS = ("/jobs", "/jobs/summary", "/dead-letters", "/triggers", "/tokens", "/usage", "/events")


@pytest.fixture(params=["straight", pytest.param("pooled", marks=pytest.mark.scene)])
async def small(
    request: pytest.FixtureRequest,
    database: str,
    core: Core,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[World]:
    """An API with two connections for everybody."""
    monkeypatch.setattr("fairlane.api.service.POOL", 2)
    for slug in TENANTS:
        await core.a_tenant(slug)
    await core.a_definition("a.task")
    if request.param == "straight":
        async with world_of(database, core, NO_STREAMS) as found:
            yield found
        return
    with pgbouncer(database, tmp_path) as url:
        async with world_of(url, core, NO_STREAMS) as found:
            yield found


def writes(jobs: list[UUID]) -> dict[str, Any]:
    """Calls that change something, each a new one every time."""
    ids = iter(jobs)
    task = {"definition_key": "a.task", "payload": {"text": CANARY}}
    return {
        "cancel": lambda: ("POST", f"/jobs/{next(ids)}/cancel", {"reason": CANARY}),
        "enqueue": lambda: ("POST", "/jobs", {**task, "correlation_id": CANARY}),
        "batch": lambda: ("POST", "/jobs/batch", {"jobs": [task] * 3}),
        "trigger": lambda: ("POST", "/triggers", {**ON_EVENT, "label": f"{CANARY} {uuid4()}"}),
        "token": lambda: ("POST", "/tokens", {"role": "viewer", "name": CANARY}),
        "event": lambda: ("POST", "/events", {"name": "e", "data": {"text": CANARY}}),
        "bulk": lambda: (
            "POST",
            "/jobs/bulk",
            {"action": "cancel", "filter": {"ids": [str(next(ids)) for _ in range(3)]}},
        ),
    }


async def test_a_call_that_is_cancelled_at_any_wait_leaves_nothing_behind(
    small: World, core: Core
) -> None:
    admin, rival = await small.caller("admin", "acme"), await small.caller("admin", "other")
    jobs = await core.flood("acme", "a.task", 400, payload={"text": CANARY})
    await core.enqueue("other", "a.task")
    calls: dict[str, Any] = {f"GET {path}": lambda path=path: ("GET", path, None) for path in READS}
    calls["GET one job"] = lambda: ("GET", f"/jobs/{jobs[0]}", None)
    calls |= writes(jobs)
    with tallied("requests cancelled at every wait") as tally:
        for name, make in calls.items():
            at = 0
            while True:
                at += 1
                assert at < MOST, f"{name} has no end"
                method, path, body = make()
                options = {} if body is None else {"json": body}
                if not await cancelled_at(admin.call(method, path, **options), at):
                    break
                tally.injected += 1
                tally.operations += 2
                theirs = await rival.get(READS[at % len(READS)])
                said = f"{name}, cancelled at wait {at}"
                tally.hold(theirs.status_code == 200, f"{said}: {theirs.text}")
                tally.hold(CANARY not in theirs.text, f"{said}: {theirs.text}")
            assert at > 2, f"{name} was cancelled {at - 1} times"
        tally.hold(await is_whole(small), "a connection did not come back")
        for left in await left_over(small):
            tally.hold(left == ("", ""), f"a connection still has {left}")
        for told in await halves(core):
            tally.hold(False, told)
        await core.assert_books_balance()
    assert tally.injected > 60


async def is_whole(world: World) -> bool:
    """All of the pool can be had at once, and none is busy."""
    pool = world.app.state.fairlane.database.pool
    async with asyncio.timeout(10):
        while pool.get_size() != pool.get_idle_size():
            await asyncio.sleep(0.01)
        both = [await pool.acquire() for _ in range(2)]
        for each in both:
            await pool.release(each)
    return True


async def left_over(world: World) -> list[tuple[str, str]]:
    """The tenant and actor that each connection still carries."""
    pool = world.app.state.fairlane.database.pool
    both = [await pool.acquire() for _ in range(2)]
    sql = (
        "select coalesce(current_setting('fairlane.tenant_id', true), ''), "
        "coalesce(current_setting('fairlane.actor', true), '')"
    )
    try:
        return [tuple((await each.fetch(sql))[0]) for each in both]
    finally:
        for each in both:
            await pool.release(each)


async def halves(core: Core, *, of_all: bool = True) -> list[str]:
    """Changes without their line in the audit, lines without their change; with `of_all`, kinds
    of change of which there is none."""
    wrong = []
    for what, sql in WHOLE.items():
        changes, lines = (await core.fetch(sql))[0]
        if changes != lines or (of_all and not lines):
            wrong.append(f"{what}: {changes} changes and {lines} lines in the audit")
    return wrong


OF_AUDIT = "(select count(*) from fairlane.audit where action = '{}')"
WHOLE = {
    "canceled jobs": "select (select count(*) from fairlane.jobs where status = 'canceled'), "
    + OF_AUDIT.format("job.cancel"),
    "triggers": "select (select count(*) from fairlane.trigger where source <> 'system'), "
    + OF_AUDIT.format("trigger.create"),
    "tokens": "select (select count(*) from fairlane.token), " + OF_AUDIT.format("token.create"),
    "operations": "select (select count(*) from fairlane.operation), "
    + OF_AUDIT.format("operation.create"),
}


async def test_the_harness_itself_tells_a_half_written_change(small: World, core: Core) -> None:
    """A check that never failed proves nothing."""
    caller: Caller = await small.caller("admin", "acme")
    assert (await caller.post("/tokens", {"role": "viewer"})).status_code == 201
    assert await halves(core, of_all=False) == []
    await core.fetch("delete from fairlane.audit where action = 'token.create'")
    assert any("tokens" in each for each in await halves(core, of_all=False))
