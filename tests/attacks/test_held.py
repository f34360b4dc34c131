"""A worker speaks for the attempts that it holds, by its own token, and for nothing else (S5)."""

import asyncio
from typing import Any
from uuid import UUID

from api.world import Caller, World
from attacks.tally import tallied
from fairlane.access import tokens
from support.clock import Clock
from support.core import Core

CALLS: dict[str, dict[str, Any]] = {
    "heartbeat": {},
    "progress": {"phase": "stolen", "lines": [{"level": "info", "message": "stolen"}]},
    "complete": {"result": {"stolen": True}},
    "fail": {"error": {"message": "stolen"}},
}


async def claimed(caller: Caller, name: str, queue: str = "default") -> dict[str, Any]:
    claim = {"worker": name, "queues": {queue: 1}}
    (held,) = (await caller.post("/worker/jobs/claim", claim)).json()["jobs"]
    return dict(held)


async def rows(core: Core, *jobs: str) -> list[str]:
    """All that is known of some jobs, but for their leases."""
    found: list[str] = []
    for table, column in (
        *(("job", "id"), ("history", "id"), ("dead_letter", "id"), ("item", "job_id")),
        *(("attempt", "job_id"), ("log_line", "job_id"), ("output", "job_id")),
    ):
        sql = (
            f"select to_jsonb(t)::text from fairlane.{table} t where {column} = any ($1) order by 1"
        )
        found += [row[0] for row in await core.fetch(sql, [UUID(job) for job in jobs])]
    return found


async def test_no_token_name_attempt_or_job_can_be_swapped_guessed_or_replayed(
    world: World, core: Core, clock: Clock
) -> None:
    ours, theirs = await world.caller("worker"), await world.caller("worker")
    operator, admin = await world.caller("operator"), await world.caller("admin", "acme")
    await core.enqueue("acme", "a.task")
    mine = await claimed(ours, "w-ours")
    await core.enqueue("other", "a.task")
    stolen = await claimed(theirs, "w-theirs")
    waiting = str(await core.enqueue("acme", "a.task"))
    done = await world.ended("acme", "a.task")
    jobs = (mine["id"], stolen["id"], waiting, done)
    before = await rows(core, *jobs)
    attempt = stolen["attempt"]
    tries: list[tuple[Caller, str, str, int]] = [
        (ours, "w-theirs", stolen["id"], attempt),  # another token, by the right name
        (ours, "w-ours", stolen["id"], attempt),
        (operator, "w-theirs", stolen["id"], attempt),
        (theirs, "w-ours", stolen["id"], attempt),  # the right token, by another name
        (theirs, "w-theirs ", stolen["id"], attempt),
        (theirs, "W-THEIRS", stolen["id"], attempt),
        (theirs, "w-theirs", mine["id"], mine["attempt"]),  # another's job, of another tenant
        (theirs, "w-theirs", waiting, 1),
        (theirs, "w-theirs", done, 1),
        *((theirs, "w-theirs", stolen["id"], attempt + n) for n in (-1, 1, 2, 1000)),
    ]
    with tallied("attempts of others") as tally:
        for caller, name, job, number in tries:
            for call, body in CALLS.items():
                sent = {"worker": name, "attempt": number, **body}
                answer = await caller.post(f"/worker/jobs/{job}/{call}", sent)
                tally.injected += 1
                tally.operations += 1
                good = answer.status_code == 409 or (number < 1 and answer.status_code == 422)
                tally.hold(good, f"{call} {sent} {job}: {answer.status_code} {answer.text}")
        for call, body in CALLS.items():
            sent = {"worker": "w-theirs", "attempt": attempt, **body}
            answer = await admin.post(f"/worker/jobs/{stolen['id']}/{call}", sent)
            tally.injected += 1
            tally.hold(answer.status_code == 403, f"an admin may {call}: {answer.text}")
        tally.hold(await rows(core, *jobs) == before, "something was changed by who holds nothing")
        await replays(tally, core, clock, ours, theirs, stolen)


async def replays(
    tally: Any, core: Core, clock: Clock, ours: Caller, theirs: Caller, held: dict[str, Any]
) -> None:
    """The lease ends, another worker has the job: the old fence opens nothing. Nor does the new
    one, once the job has ended."""
    clock.advance(seconds=120)
    await core.tick()
    await core.sweep()
    again = await claimed(ours, "w-late")
    while again["id"] != held["id"]:
        again = await claimed(ours, "w-late")
    before = await rows(core, held["id"])
    for call, body in CALLS.items():
        sent = {"worker": "w-theirs", "attempt": held["attempt"], **body}
        answer = await theirs.post(f"/worker/jobs/{held['id']}/{call}", sent)
        tally.injected += 1
        tally.hold(answer.status_code == 409, f"late {call}: {answer.status_code} {answer.text}")
    tally.hold(await rows(core, held["id"]) == before, "a late worker changed something")
    fence = {"worker": "w-late", "attempt": again["attempt"]}
    ended = await ours.post(f"/worker/jobs/{held['id']}/complete", {**fence, "result": 1})
    tally.hold(ended.status_code == 200, f"who holds it ends it: {ended.text}")
    before = await rows(core, held["id"])
    for call, body in CALLS.items():
        answer = await ours.post(f"/worker/jobs/{held['id']}/{call}", {**fence, **body})
        tally.injected += 1
        tally.hold(answer.status_code == 409, f"replayed {call}: {answer.status_code}")
    tally.hold(await rows(core, held["id"]) == before, "a replay changed something")


async def test_a_token_that_is_revoked_or_over_works_at_nothing_any_more(
    world: World, core: Core
) -> None:
    caller = await world.caller("worker")
    await core.enqueue("acme", "a.task")
    held = await claimed(caller, "w1")
    assert caller.token is not None
    door = world.app.state.fairlane.door
    await asyncio.wait_for(door.revocations.listening.wait(), 10)
    heard = asyncio.get_running_loop().create_future()
    door.on_revoked(heard.set_result)
    await tokens.revoke(core.conn, caller.token.split("_")[1])
    await asyncio.wait_for(heard, 10)
    for call, body in CALLS.items():
        sent = {"worker": "w1", "attempt": held["attempt"], **body}
        answer = await caller.post(f"/worker/jobs/{held['id']}/{call}", sent)
        assert answer.status_code == 401, call
