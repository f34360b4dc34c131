"""What the overviews show of very many jobs."""

from datetime import UTC, datetime

from fairlane.web import figures
from support.core import Core

FINISHED = """
insert into fairlane.history (id, tenant_id, definition_id, queue, status, priority, payload,
  scheduled_for, created_at, queued_at, started_at, finished_at, attempt, forgiven, lost,
  max_attempts, source, replays)
select fairlane.uuid7(at), t.id, d.id, 'default', 'succeeded', 100, '{}', at, at, at, at, at,
       1, 0, 0, 3, 'manual', 0
  from generate_series(1, $1::int) n
 cross join lateral (select fairlane.clock() - n * interval '10 milliseconds') m (at)
 cross join fairlane.tenant t
 cross join fairlane.definition d
"""


async def test_a_rate_is_right_and_told_where_more_ended_than_is_looked_at(core: Core) -> None:
    await core.a_tenant("acme")
    await core.a_definition("a.task")
    tenant = await core.one("select id from fairlane.tenant")
    await core.fetch(FINISHED, figures.NEWEST // 10)

    few = await figures.activity_of(core.conn, tenant, datetime.now(UTC), UTC)
    assert not few.is_cut
    await core.fetch("delete from fairlane.history")
    await core.fetch(FINISHED, figures.NEWEST * 3)
    many = await figures.activity_of(core.conn, tenant, datetime.now(UTC), UTC)

    assert many.is_cut
    assert 80 < many.per_second < 110, "one in ten milliseconds"
    assert sum(few.finished) == figures.NEWEST // 10
