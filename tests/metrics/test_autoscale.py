"""/autoscale counts what a new slot could start, and nothing else."""

from datetime import timedelta
from typing import Any

import httpx2

from api.world import World
from support.clock import Clock
from support.core import Core


async def ask(world: World, queue: str) -> httpx2.Response:
    world.app.state.fairlane.installation._wanted.clear()
    return await world.http.get(f"/autoscale?queue={queue}", headers={"Host": "localhost"})


async def runnable(world: World, queue: str = "default") -> Any:
    answer = (await ask(world, queue)).json()
    core = world.core
    assert await core.one("select fairlane.wanted_slots($1)", queue) == answer["wanted_slots"]
    assert answer["wanted_slots"] == answer["runnable"] + answer["running"]
    return answer["runnable"]


async def test_an_unknown_queue_is_a_404(world: World) -> None:
    answer = await ask(world, "nowhere")
    assert (answer.status_code, answer.json()["status"]) == (404, 404)
    assert (await ask(world, "")).status_code == 422
    assert await world.core.one("select fairlane.wanted_slots('nowhere')") is None


async def test_work_that_nobody_has_swept_counts(world: World, core: Core) -> None:
    """With no worker left, nobody else would ever take it in, and none would be started."""
    await core.flood("other", "a.task", 4)
    assert (await ask(world, "default")).json() == {
        "queue": "default",
        "runnable": 4,
        "running": 0,
        "wanted_slots": 4,
    }


async def test_no_more_than_a_tenants_limit_counts(world: World, core: Core) -> None:
    await core.flood("acme", "a.task", 50)  # may run 3
    await core.flood("other", "a.task", 50)  # may run 10
    assert await runnable(world) == 13
    await core.claim(await core.a_worker(), 8)
    assert await runnable(world) == 5  # with the 8 that run, as many as before
    await core.claim(await core.a_worker(), 50)
    assert await runnable(world) == 0


async def test_the_tenants_of_a_definition_share_its_limit(world: World, core: Core) -> None:
    await core.a_definition("few", max_running=4)
    await core.flood("acme", "few", 10)
    await core.flood("other", "few", 10)
    assert await runnable(world) == 4


async def test_what_is_due_later_does_not_count(world: World, core: Core, clock: Clock) -> None:
    clock.freeze()
    await core.enqueue("acme", "a.task", scheduled_for=clock.now() + timedelta(hours=1))
    assert await runnable(world) == 0
    clock.advance(hours=2)
    await core.one("select fairlane.promote()")
    assert await runnable(world) == 1


async def test_a_rate_limit_counts(world: World, core: Core) -> None:
    await core.a_tenant("slow", max_running=100, starts_per_minute=2)
    await core.flood("slow", "a.task", 10)
    assert await runnable(world) == 2
    assert len(await core.claim(await core.a_worker(), 10)) == 2
    assert await runnable(world) == 0


async def test_what_is_paused_does_not_count(world: World, core: Core) -> None:
    await core.flood("acme", "a.task", 2)
    assert await runnable(world) == 2
    await core.one("select fairlane.pause_tenant('acme')")
    assert await runnable(world) == 0
    await core.one("select fairlane.resume_tenant('acme')")
    await core.one("select fairlane.pause_queue('default')")
    assert await runnable(world) == 0
