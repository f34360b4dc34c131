"""Workers over HTTP: the same rules, the same fencing."""

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from api.world import Caller, World
from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.core import calls
from support.clock import Clock
from support.core import Core

CLAIM = {"worker": "w1", "queues": {"default": 4}}


async def claimed(caller: Caller, **changes: Any) -> list[dict[str, Any]]:
    answer = await caller.post("/worker/jobs/claim", {**CLAIM, **changes})
    assert answer.status_code == 200, answer.text
    jobs: list[dict[str, Any]] = answer.json()["jobs"]
    return jobs


async def test_a_job_is_claimed_kept_and_completed(
    worker: Caller, viewer: Caller, core: Core
) -> None:
    job = str(await core.enqueue("acme", "a.task", payload={"password": "hunter22"}))

    (taken,) = await claimed(worker)
    assert taken["id"] == job
    assert taken["payload"] == {"n": 1, "password": "hunter22"}, "completed, and the real one"
    held = {"worker": "w1", "attempt": taken["attempt"]}
    beat = (await worker.post(f"/worker/jobs/{job}/heartbeat", held)).json()
    assert beat["lease_expires_at"] >= taken["lease_expires_at"]
    assert beat["cancel_requested"] is False
    said = {
        **held,
        "phase": "upload",
        "progress": {"done": 3, "total": 7},
        "lines": [{"message": "sent hunter22"}],
    }
    assert (await worker.post(f"/worker/jobs/{job}/progress", said)).status_code == 200
    shown = (await viewer.get(f"/jobs/{job}")).json()
    assert (shown["phase"], shown["progress"]["done"], shown["worker"]) == ("upload", 3, "w1")
    assert "hunter22" not in (await viewer.get(f"/jobs/{job}/logs")).text

    done = await worker.post(f"/worker/jobs/{job}/complete", {**held, "result": {"ok": True}})
    assert done.json() == {"id": job, "status": "succeeded"}
    assert (await viewer.get(f"/jobs/{job}/result")).json()["result"] == {"ok": True}
    assert (await worker.post(f"/worker/jobs/{job}/complete", held)).status_code == 409


async def test_a_failed_attempt_comes_again_and_then_is_parked(worker: Caller, core: Core) -> None:
    job = str(await core.enqueue("acme", "a.task", max_attempts=1))
    (taken,) = await claimed(worker)
    held = {"worker": "w1", "attempt": taken["attempt"], "error": {"message": "it broke"}}

    assert (await worker.post(f"/worker/jobs/{job}/fail", held)).json()["status"] == "dead_letter"


async def test_a_lost_lease_changes_nothing_any_more(
    worker: Caller, core: Core, clock: Clock
) -> None:
    job = str(await core.enqueue("acme", "a.task"))
    (taken,) = await claimed(worker)
    clock.advance(seconds=61)
    await core.rescue()
    (again,) = await claimed(worker, worker="w2")
    assert again["attempt"] == taken["attempt"] + 1

    late = {"worker": "w1", "attempt": taken["attempt"]}
    for call, more in (
        ("heartbeat", {}),
        ("progress", {"phase": "late"}),
        ("complete", {"result": 1}),
        ("fail", {"error": {"message": "late"}}),
    ):
        answer = await worker.post(f"/worker/jobs/{job}/{call}", {**late, **more})
        assert answer.status_code == 409, call
        assert answer.json()["type"] == "/problems/lease-lost"
    assert await core.status(again["id"]) == "running"
    now = {"worker": "w2", "attempt": again["attempt"]}
    assert (await worker.post(f"/worker/jobs/{job}/complete", now)).status_code == 200


async def test_nobody_speaks_for_a_job_that_another_token_holds(
    world: World, worker: Caller, core: Core
) -> None:
    job = str(await core.enqueue("acme", "a.task"))
    (taken,) = await claimed(worker)
    thief = await world.caller("worker")

    held = {"worker": "w1", "attempt": taken["attempt"]}
    assert (await thief.post(f"/worker/jobs/{job}/complete", held)).status_code == 409
    wrong = {"worker": "w2", "attempt": taken["attempt"]}
    assert (await worker.post(f"/worker/jobs/{job}/complete", wrong)).status_code == 409


async def test_a_claim_waits_for_the_first_job(worker: Caller, core: Core) -> None:
    waiting = asyncio.create_task(claimed(worker, wait_seconds=25))
    await listening(core)
    job = str(await core.enqueue("acme", "a.task"))
    async with asyncio.timeout(20):
        (taken,) = await waiting
    assert taken["id"] == job


async def test_a_canceled_job_is_told_to_its_worker(
    worker: Caller, member: Caller, core: Core
) -> None:
    job = str(await core.enqueue("acme", "a.task"))
    (taken,) = await claimed(worker)
    held = {"worker": "w1", "attempt": taken["attempt"]}
    assert (await member.post(f"/jobs/{job}/cancel")).json()["status"] == "running"

    beat = await worker.post(f"/worker/jobs/{job}/heartbeat", held)
    assert beat.json()["cancel_requested"] is True
    stopped = {**held, "error": {"message": "stopped"}}
    ended = await worker.post(f"/worker/jobs/{job}/fail", stopped)
    assert ended.json()["status"] == "canceled"


async def test_a_payload_that_does_not_fit_is_parked_and_not_handed_out(
    worker: Caller, core: Core
) -> None:
    job = await core.enqueue("acme", "a.task", payload={"n": "x"})

    assert await claimed(worker) == []
    assert await core.status(job) == "dead_letter"


async def test_an_unknown_queue_is_refused(worker: Caller) -> None:
    answer = await worker.post("/worker/jobs/claim", {"worker": "w", "queues": {"none": 1}})
    assert answer.status_code == 422


def reference_client() -> str:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    found = re.search(r"```sh\n(#!/bin/sh\n.*?)```", text, re.DOTALL)
    assert found is not None, "docs/api.md has the client"
    return found[1]


async def test_the_shell_worker_of_the_docs_works(
    served: str, world: World, worker: Caller, core: Core, tmp_path: Path
) -> None:
    script = tmp_path / "worker.sh"
    script.write_text(reference_client())
    good = await core.enqueue("acme", "a.task", payload={"n": 4})
    environment = {
        "PATH": os.environ["PATH"],
        "FAIRLANE_URL": served,
        "FAIRLANE_TOKEN": str(worker.token),
        "ONCE": "1",
    }
    process = await asyncio.create_subprocess_exec(
        "sh", str(script), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(60):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    row = await core.job(good)
    assert row["status"] == "succeeded", said.decode()


async def test_an_operator_may_work_too_whatever_tenant_it_names(
    operator: Caller, core: Core
) -> None:
    job = str(await core.enqueue("other", "a.task"))
    (taken,) = await claimed(operator.acting_for("acme"))
    assert taken["id"] == job
    held = {"worker": "w1", "attempt": taken["attempt"]}
    done = await operator.acting_for("acme").post(f"/worker/jobs/{job}/complete", held)
    assert done.json()["status"] == "succeeded"


async def listening(core: Core) -> None:
    """Until a claim has found nothing, and waits."""
    until = "select exists (select from fairlane.doorbell where waiting_until > fairlane.clock())"
    async with asyncio.timeout(20):
        while not await core.one(until):
            await asyncio.sleep(0.01)


async def test_a_claim_whose_caller_has_gone_takes_nothing(
    served: str, worker: Caller, core: Core
) -> None:
    host, port = served.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({**CLAIM, "wait_seconds": 25}).encode()
    head = (
        "POST /api/v1/worker/jobs/claim HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {worker.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    await listening(core)
    writer.close()
    await writer.wait_closed()

    job = str(await core.enqueue("acme", "a.task"))
    (taken,) = await claimed(worker, worker="w2", wait_seconds=25)
    assert (taken["id"], taken["attempt"]) == (job, 1)


async def test_what_was_claimed_while_its_caller_went_is_handed_back(
    world: World, worker: Caller, core: Core
) -> None:
    job = str(await core.enqueue("acme", "a.task"))
    gone = iter([False, True, True])

    async def is_gone() -> bool:
        return next(gone)

    who = Principal("token:lost", Role.WORKER)
    claimer = world.app.state.fairlane.claimer
    assert await claimer.claim(who, "w1", {"default": 1}, 0, holding=None, is_gone=is_gone) == []
    (taken,) = await claimed(worker)
    assert (taken["id"], taken["attempt_count"]) == (job, 1), "the one before does not count"


async def test_an_answer_that_was_lost_on_its_way_is_given_back(worker: Caller, core: Core) -> None:
    kept, lost = [str(await core.enqueue("acme", "a.task")) for _ in range(2)]
    assert {job["id"] for job in await claimed(worker)} == {kept, lost}
    assert await claimed(worker) == [], "a name that says nothing keeps what it has"

    (again,) = await claimed(worker, holding=[kept])
    assert (again["id"], again["attempt_count"]) == (lost, 1)
    held = {"worker": "w1", "attempt": 1}
    assert (await worker.post(f"/worker/jobs/{kept}/complete", held)).status_code == 200


async def test_a_payload_that_nobody_can_read_fails_alone(worker: Caller, core: Core) -> None:
    deep = "[" * 1_200 + "]" * 1_200
    sql = "select id from fairlane.enqueue('acme', 'a.task', $1::text::jsonb)"
    unread = await core.one(sql, f'{{"n": {deep}}}')
    read = str(await core.enqueue("acme", "a.task"))

    assert [job["id"] for job in await claimed(worker)] == [read]
    assert await core.status(unread) == "dead_letter"


async def test_a_worker_that_is_drained_gets_nothing_more_and_ends_in_order(
    worker: Caller, core: Core
) -> None:
    job, waiting = [str(await core.enqueue("acme", "a.task")) for _ in range(2)]
    (taken,) = await claimed(worker, queues={"default": 1})
    (row,) = await core.fetch("select id from fairlane.workers where name = 'w1'")
    await core.send(calls.drain_worker(row["id"]))

    told = (await worker.post("/worker/jobs/claim", CLAIM)).json()
    assert told == {"jobs": [], "drain_requested": True}
    held = {"worker": "w1", "attempt": taken["attempt"]}
    beat = (await worker.post(f"/worker/jobs/{job}/heartbeat", held)).json()
    assert beat["drain_requested"] is True
    done = await worker.post(f"/worker/jobs/{job}/complete", held)
    assert done.status_code == 200, "what it holds it finishes"

    told = (await worker.post("/worker/jobs/claim", CLAIM)).json()
    assert told == {"jobs": [], "drain_requested": True}
    state = await core.one("select state from fairlane.worker where id = $1", row["id"])
    assert state == "stopped"
    (taken,) = await claimed(worker)
    assert taken["id"] == waiting, "who claims by its name after that is another"
