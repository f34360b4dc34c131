"""The whole API works behind a PgBouncer in transaction mode, with two servers for everybody."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from api.test_streams import reading
from api.world import World, on_a_socket, world_of
from support.core import Core
from support.pgbouncer import pgbouncer


@pytest.fixture
def pooled_url(database: str, tmp_path: Path) -> Iterator[str]:
    with pgbouncer(database, tmp_path) as url:
        yield url


@pytest.fixture
async def pooled(pooled_url: str, core: Core) -> AsyncIterator[World]:
    await core.a_tenant("acme")
    await core.a_tenant("other")
    await core.a_definition("a.task")
    async with world_of(pooled_url, core) as found:
        yield found


async def test_a_job_is_enqueued_claimed_followed_and_completed(pooled: World) -> None:
    member = await pooled.caller("member", "acme")
    worker = await pooled.caller("worker")
    rival = await pooled.caller("viewer", "other")
    sent = await member.post("/jobs", {"definition_key": "a.task"})
    assert sent.status_code == 202, sent.text
    job = sent.json()["id"]

    async with (
        on_a_socket(pooled.app) as address,
        reading(address, member, f"/jobs/{job}/events") as reader,
    ):
        assert (await reader.until("state"))["status"] == "queued"
        claim = {"worker": "w1", "queues": {"default": 1}}
        [held] = (await worker.post("/worker/jobs/claim", claim)).json()["jobs"]
        assert held["id"] == job
        done = {"worker": "w1", "attempt": held["attempt"], "result": {"n": 1}}
        answer = await worker.post(f"/worker/jobs/{job}/complete", done)
        assert answer.status_code == 200, answer.text
        assert (await reader.until("end"))["detail"] == "the job is succeeded"

    assert [each["id"] for each in (await member.get("/jobs")).json()["items"]] == [job]
    assert (await member.get(f"/jobs/{job}/result")).json()["result"] == {"n": 1}
    assert (await rival.get("/jobs")).json()["items"] == []
    assert (await rival.get(f"/jobs/{job}")).status_code == 404


async def test_a_batch_and_a_bulk_are_done(pooled: World) -> None:
    admin = await pooled.caller("admin", "acme")
    jobs = [{"definition_key": "a.task"} for _ in range(60)]
    batch = (await admin.post("/jobs/batch", {"jobs": jobs})).json()["items"]
    assert {each["status"] for each in batch} == {202}

    body = {"action": "cancel", "filter": {"definition_key": "a.task"}}
    cancelled = (await admin.post("/jobs/bulk", body)).json()
    assert (cancelled["matched"], cancelled["done"]) == (60, 60)
    again = (await admin.post("/jobs/bulk", {**body, "action": "retry"})).json()
    assert (again["done"], again["operation"]["state"]) == (60, "done")
    assert await pooled.core.one("select count(*) from fairlane.job") == 60
