"""Two people, or two starting workers, change the same thing at once."""

import pytest

from support.core import Core
from support.sessions import Session, done

pytestmark = pytest.mark.race


async def test_two_workers_that_define_the_same_at_their_start_both_succeed(
    core: Core, three: list[Session]
) -> None:
    first, second, _ = three

    await first.begin()
    await first.a_definition("kind")
    defining = await second.start_blocked(second.a_definition("kind"))
    await first.commit()

    await done(defining)
    assert await core.one("select count(*) from fairlane.definition") == 1


async def test_two_changes_of_one_tenant_both_hold(core: Core, three: list[Session]) -> None:
    first, second, _ = three
    tenant = await core.a_tenant()

    await first.begin()
    await first.limit_tenant(tenant, weight=5)
    changing = await second.start_blocked(second.limit_tenant(tenant, max_running=7))
    await first.commit()
    await done(changing)

    row = (await core.fetch("select weight, max_running from fairlane.tenant"))[0]
    assert tuple(row) == (5, 7)


async def test_a_report_over_the_history_does_not_stop_the_finishing(
    core: Core, three: list[Session]
) -> None:
    """Making or dropping a partition asks for the table; whoever asks makes all others wait."""
    reader, leader, finisher = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    job = await core.enqueue(tenant, kind)
    lease = await core.claim_one(worker)

    await reader.begin()
    await reader.fetch("select count(*) from fairlane.history")
    making = await leader.start(leader.fetch("select fairlane.make_partitions(20)"))
    finishing = await finisher.start(finisher.finish(lease))

    assert await done(finishing) == [job]
    await reader.commit()
    await done(making)
