"""Dead letters of one cause, and notes beside them."""

import pytest

from api.world import Caller
from support.core import Core


async def died(core: Core, *messages: str) -> list[str]:
    worker = await core.a_worker(3600)
    found = []
    for message in messages:
        job = await core.enqueue("acme", "a.task", max_attempts=1)
        lease = await core.claim_one(worker)
        await core.fail(lease, error={"type": "Oops", "message": message})
        found.append(str(job))
    return found


async def test_letters_of_one_cause_are_listed_and_settled_by_their_fingerprint(
    admin: Caller, core: Core
) -> None:
    first, second, other = await died(core, "row 17 is bad", "row 4711 is bad", "row is gone")
    cause = (await admin.get(f"/dead-letters/{first}")).json()["fingerprint"]
    listed = (await admin.get("/dead-letters", fingerprint=cause)).json()["items"]
    assert [each["id"] for each in listed] == [second, first]
    body = {"action": "resolve", "filter": {"definition_key": "a.task", "fingerprint": cause}}
    assert (await admin.post("/dead-letters/bulk", body)).json()["done"] == 2
    assert (await admin.get(f"/dead-letters/{other}")).json()["status"] == "pending"


@pytest.mark.parametrize("cause", ["x", "0" * 15, "G" * 16])
async def test_what_is_no_fingerprint_is_refused(admin: Caller, cause: str) -> None:
    assert (await admin.get("/dead-letters", fingerprint=cause)).status_code == 422


async def test_a_note_is_kept_whatever_the_status_and_says_something(
    admin: Caller, member: Caller, core: Core
) -> None:
    (job,) = await died(core, "a word about it")
    for notes in ("asked them", "they answered"):
        answer = await admin.post(f"/dead-letters/{job}/note", {"notes": notes})
        assert answer.json()["notes"] == notes
    for notes in ("", "   ", "a\x00b", "x" * 4001):
        said = await admin.post(f"/dead-letters/{job}/note", {"notes": notes})
        assert said.status_code == 422
    said = await member.post(f"/dead-letters/{job}/note", {"notes": "me too"})
    assert said.status_code == 403
    assert (await admin.post(f"/dead-letters/{job}/resolve")).status_code == 200
    said = await admin.post(f"/dead-letters/{job}/note", {"notes": "after"})
    assert said.status_code == 200
    sql = "select detail ->> 'notes' from fairlane.audit where target = $1 order by id"
    kept = [row[0] for row in await core.fetch(sql, job)]
    assert kept == ["asked them", "they answered", None, "after"]


async def test_a_dead_letter_is_assigned_and_listed_by_whom(
    admin: Caller, member: Caller, core: Core
) -> None:
    first, second = await died(core, "one", "two")
    path = f"/dead-letters/{first}/assign"
    assert (await admin.post(path, {"assignee": "ada"})).json()["assignee"] == "ada"
    for name, found in (("ada", [first]), ("", [second]), ("grace", [])):
        listed = (await admin.get("/dead-letters", assignee=name)).json()["items"]
        assert [each["id"] for each in listed] == found
    for wrong in ({}, {"assignee": " "}, {"assignee": "x" * 201}, {"assignee": 7}):
        assert (await admin.post(path, wrong)).status_code == 422
    assert (await member.post(path, {"assignee": "me"})).status_code == 403
    assert (await admin.post(path, {"assignee": None})).json()["assignee"] is None


async def test_what_was_settled_too_soon_is_reopened(admin: Caller, core: Core) -> None:
    (job,) = await died(core, "a word about it")
    assert (await admin.post(f"/dead-letters/{job}/reopen")).status_code == 409
    await admin.post(f"/dead-letters/{job}/resolve")
    reopened = (await admin.post(f"/dead-letters/{job}/reopen")).json()
    assert (reopened["status"], reopened["settled_at"]) == ("pending", None)
