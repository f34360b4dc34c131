"""The same id, or the same dedupe key, sent again at the worst moment: still one job."""

import pytest

from fairlane.ids import uuid7
from support.core import Core
from support.sessions import Session, done

pytestmark = pytest.mark.race


async def test_a_resend_while_the_job_is_finishing_makes_no_second_job(
    core: Core, three: list[Session]
) -> None:
    finisher, sender, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    job = await core.enqueue(tenant, kind)
    lease = await core.claim_one(worker)

    await finisher.begin()
    await finisher.finish(lease)
    sending = await sender.start(sender.ask(tenant, kind, id=job))
    await finisher.commit()

    assert (await done(sending))["status"] == "succeeded"
    assert await core.claim(worker) == []
    await core.assert_books_balance()


async def test_a_resend_while_the_job_is_dying_makes_no_second_job(
    core: Core, three: list[Session]
) -> None:
    failing, sender, _ = three
    tenant, worker = await core.a_tenant(), await core.a_worker()
    kind = await core.a_definition(max_attempts=1)
    job = await core.enqueue(tenant, kind)
    lease = await core.claim_one(worker)

    await failing.begin()
    await failing.fail(lease)
    sending = await sender.start(sender.ask(tenant, kind, id=job))
    await failing.commit()

    assert (await done(sending))["status"] == "dead_letter"
    await core.assert_books_balance()


async def test_a_dedupe_key_that_comes_free_between_two_looks_is_taken(
    core: Core, three: list[Session]
) -> None:
    """The holder of the key was there when we tried to insert, and is gone when we look for it."""
    sender, _, door = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.enqueue(tenant, kind, dedupe_key="nightly")
    lease = await core.claim_one(worker)

    await sender.pause_at("insert", "job")
    async with door.held():
        sending = await sender.start_blocked(sender.ask(tenant, kind, dedupe_key="nightly"))
        await core.finish(lease)

    answer = await done(sending)
    assert (answer["status"], answer["deduplicated"]) == ("queued", False)
    assert (await core.claim_one(worker)).job_id == answer["id"]


async def test_two_that_send_the_same_id_at_once_get_one_job(
    core: Core, three: list[Session]
) -> None:
    first, second, _ = three
    tenant, kind, job = await core.a_tenant(), await core.a_definition(), uuid7()

    await first.begin()
    await first.ask(tenant, kind, id=job)
    sending = await second.start_blocked(second.ask(tenant, kind, id=job))
    await first.commit()

    assert (await done(sending))["id"] == job
    assert await core.one("select count(*) from fairlane.job") == 1
    await core.assert_books_balance()


async def test_an_id_sent_first_by_a_transaction_that_rolled_back_is_free(
    core: Core, three: list[Session]
) -> None:
    first, second, _ = three
    tenant, kind, job = await core.a_tenant(), await core.a_definition(), uuid7()

    await first.begin()
    await first.ask(tenant, kind, id=job)
    sending = await second.start_blocked(second.ask(tenant, kind, id=job))
    await first.rollback()

    assert (await done(sending))["status"] == "queued"
    assert await core.status(job) == "queued"
    await core.assert_books_balance()
