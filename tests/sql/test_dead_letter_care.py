"""Who looks after a dead letter, and that settling one can be taken back."""

from uuid import UUID

import pytest

from fairlane.core import calls
from fairlane.errors import JobNotFound, ValueRefused, WrongState
from support.core import Core

LETTER = "select status, assignee, settled_at, settled_by from fairlane.dead_letters where id = $1"
AUDIT = "select action from fairlane.audit where target = $1::text order by id"


async def a_dead_letter(core: Core) -> UUID:
    tenant, worker = await core.a_tenant(), await core.a_worker()
    kind = await core.a_definition(max_attempts=1)
    job = await core.enqueue(tenant, kind)
    await core.fail(await core.claim_one(worker))
    return job


async def test_a_dead_letter_is_somebodys_somebody_elses_and_nobodys(core: Core) -> None:
    job = await a_dead_letter(core)
    for name in ("ada", "ada", "grace", None):
        await core.send(calls.assign_dead_letter(job, name))
        (row,) = await core.fetch(LETTER, job)
        assert row["assignee"] == name
    actions = [row[0] for row in await core.fetch(AUDIT, str(job))]
    assert actions == ["dead_letter.assign"] * 3, "what changes nothing is not told"


@pytest.mark.parametrize("name", ["", "  ", "x" * 201])
async def test_a_name_says_something(core: Core, name: str) -> None:
    with pytest.raises(ValueRefused, match="a name of 1 to 200 characters"):
        await core.send(calls.assign_dead_letter(await a_dead_letter(core), name))


async def test_anothers_dead_letter_is_assigned_by_nobody(core: Core) -> None:
    job, other = await a_dead_letter(core), await core.a_tenant()
    with pytest.raises(JobNotFound):
        await core.send(calls.assign_dead_letter(job, "ada", other))


@pytest.mark.parametrize("verb", ["resolve", "ignore"])
async def test_what_was_settled_waits_again_and_can_be_replayed(core: Core, verb: str) -> None:
    job = await a_dead_letter(core)
    await getattr(core, verb)(job)

    assert await core.reopen(job) == "pending"

    (row,) = await core.fetch(LETTER, job)
    assert tuple(row) == ("pending", None, None, None)
    await core.assert_books_balance()
    await core.sweep()
    await core.assert_books_balance()
    with pytest.raises(WrongState, match="is pending already"):
        await core.reopen(job)
    assert await core.replay(job) == "queued"
    await core.assert_books_balance()


async def test_what_was_replayed_is_not_reopened(core: Core) -> None:
    job = await a_dead_letter(core)
    await core.replay(job)
    with pytest.raises(WrongState, match="is queued; to reopen it must be"):
        await core.reopen(job)
