"""What a caller sees when the database goes away, and that nothing acknowledged is lost."""

import asyncio

import httpx2
import pytest

from api.world import Caller, World
from support.core import Core


@pytest.mark.fault
async def test_a_cut_connection_is_one_job_all_the_same(
    world: World, member: Caller, core: Core
) -> None:
    """The server's connections are cut under load: it sends again, and no job is there twice."""
    answers: list[httpx2.Response] = []
    for _ in range(6):
        bodies = [{"definition_key": "a.task", "payload": {"n": n}} for n in range(20)]
        posts = asyncio.gather(*(member.post("/jobs", body) for body in bodies))
        while not posts.done() and not await core.one(CUT):
            await asyncio.sleep(0.001)
        answers += await posts

    assert {answer.status_code for answer in answers} == {202}
    stored = {str(row["id"]) for row in await core.fetch("select id from fairlane.job")}
    assert {answer.json()["id"] for answer in answers} == stored
    assert len(stored) == 120


CUT = """
select count(pg_terminate_backend(pid))
  from pg_stat_activity
 where application_name = 'fairlane server' and datname = current_database()
   and state = 'active' and query like '%api_enqueue%' and pid <> pg_backend_pid()
"""


async def test_calls_that_are_cancelled_leave_no_tenant_behind(
    world: World, viewer: Caller, rival: Caller, core: Core
) -> None:
    await core.flood("acme", "a.task", 5, correlation_id="of-acme")
    await core.flood("other", "a.task", 5, correlation_id="of-other")

    async def broken_off(caller: Caller, delay: float) -> None:
        task = asyncio.create_task(caller.get("/jobs"))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for step in range(40):
        caller = viewer if step % 2 else rival
        await asyncio.gather(*(broken_off(caller, n * 0.0007) for n in range(8)))
        ours, theirs = await asyncio.gather(viewer.get("/jobs"), rival.get("/jobs"))
        assert {job["tenant"] for job in ours.json()["items"]} == {"acme"}
        assert {job["tenant"] for job in theirs.json()["items"]} == {"other"}
