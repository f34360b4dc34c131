"""What is asked of and done to dead letters, by the calls and the web pages alike."""

from functools import partial
from typing import Any
from uuid import UUID

from fairlane import shapes
from fairlane.access.principal import Principal
from fairlane.api.answers import plain
from fairlane.api.listing import WINDOW, Found
from fairlane.api.models.dead_letters import DeadFilterIn
from fairlane.api.paging import Page
from fairlane.api.problems import not_there
from fairlane.api.service import Service
from fairlane.client.edited import replayed_with
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send

DAYS = 14
MOST_GROUPS = 100
MOST_NOTES = 200

LIST = """
select * from fairlane.dead_letters
 where tenant_id = $1
   and ($2::text is null or status = $2)
   and ($3::uuid is null or id < $3)
   and ($4::text is null or queue = $4)
   and ($5::text is null or definition_key = $5)
   and ($6::text is null or reason = $6)
   and ($7::timestamptz is null or died_at >= $7)
   and ($8::timestamptz is null or died_at < $8)
   and ($9::text is null or fingerprint = $9)
   and ($10::text is null or assignee = $10 or ($10 = '' and assignee is null))
 order by id desc limit $11
"""

# Of the newest, so that it costs the same however many there are; the newest error speaks for all.
GROUPS = """
with newest as (
  select id, definition_id, fingerprint, reason, died_at, last_error, replays, assignee,
         floor(extract(epoch from fairlane.clock() - died_at) / 86400)::int as days_ago
    from fairlane.dead_letter
   where tenant_id = $1 and status = $2
     and ($6::text is null or assignee = $6 or ($6 = '' and assignee is null))
     and case when status = 'pending' or settled_at + kept_days * interval '24 hours'
                                       > (select fairlane.clock()) then 1 end is not null
   order by id desc
   limit $3
), groups as (
  select d.key as kind, n.fingerprint, min(n.reason) as reason, count(*)::int as count,
         min(n.died_at) as first_at, max(n.died_at) as last_at, max(n.replays) as replays,
         (array_agg(n.id order by n.id desc))[1] as newest,
         array_agg(distinct n.assignee) filter (where n.assignee is not null) as assignees,
         count(*) filter (where n.assignee is null)::int as unassigned,
         array_agg(n.days_ago) filter (where n.days_ago < $4) as days,
         sum(count(*)) over ()::int as looked_at
    from newest n
    join fairlane.definition d on d.id = n.definition_id
   group by d.key, n.fingerprint
)
select g.*, l.last_error::text as last_error
  from groups g
  join fairlane.dead_letter l on l.id = g.newest
 order by g.last_at desc, g.kind, g.fingerprint
 limit $5
"""
THREAD = r"""
select a.at, a.actor, a.action, a.detail ->> 'notes' as notes, a.detail ->> 'assignee' as assignee
  from fairlane.audit a
 where a.target = $1 and a.action like 'dead\_letter.%' and a.tenant_id = $2
 order by a.id desc
 limit $3
"""
LAST_SETTLED = """
select status, settled_at, settled_by from fairlane.dead_letter
 where tenant_id = $1 and settled_at is not null
 order by settled_at desc
 limit 1
"""


async def letters(
    connection: Connection,
    who: Principal,
    status: str | None,
    wanted: DeadFilterIn,
    part: Page,
    assignee: str | None = None,
) -> Found:
    """`assignee` empty: those that nobody looks after."""
    fields = (wanted.queue, wanted.definition_key, wanted.reason)
    times = (wanted.died_after, wanted.died_before)
    cause = (wanted.fingerprint, assignee)
    args = (who.tenant_id, status, part.before, *fields, *times, *cause, part.rows)
    rows = await send(connection, Call(LIST, args))
    shown = rows[part.offset : part.offset + part.limit]
    return Found(shown, str(shown[-1]["id"]) if len(rows) == part.rows else None)


async def groups_of(
    connection: Connection, who: Principal, status: str, assignee: str | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Dead letters by kind and cause, and whether there are more than were looked at."""
    args = (who.tenant_id, status, WINDOW, DAYS, MOST_GROUPS, assignee)
    rows = await send(connection, Call(GROUPS, args))
    groups = [shapes.without_secrets(plain(row)) for row in rows]
    for each in groups:
        each["by_day"] = [float((each["days"] or []).count(day)) for day in range(DAYS)][::-1]
    whole = groups[0]["looked_at"] if groups else 0
    return groups, whole >= WINDOW


async def thread_of(connection: Connection, who: Principal, job_id: UUID) -> list[dict[str, Any]]:
    """What people did about it and said, oldest first; the newest where there is too much."""
    args = (str(job_id), who.tenant_id, MOST_NOTES)
    return [dict(row) for row in reversed(await send(connection, Call(THREAD, args)))]


async def last_settled(connection: Connection, who: Principal) -> Record | None:
    rows = await send(connection, Call(LAST_SETTLED, (who.tenant_id,)))
    return rows[0] if rows else None


async def the_letter(connection: Connection, who: Principal, job_id: UUID) -> dict[str, Any]:
    call = Call(
        "select * from fairlane.dead_letters where id = $1 and tenant_id = $2",
        (job_id, who.tenant_id),
    )
    rows = await send(connection, call)
    if not rows:
        raise not_there("dead letter")
    return shapes.dead_letter(dict(rows[0]))


async def replay_letter(
    here: Service,
    who: Principal,
    job_id: UUID,
    payload: dict[str, Any] | None = None,
    notes: str | None = None,
) -> dict[str, Any]:
    """The same job goes back in its lane, with another payload if one is given and fits."""
    async with here.database.acting(who) as connection:
        inputs_hash = None
        if payload is not None:
            payload, inputs_hash = await replayed_with(
                partial(send, connection), job_id, payload, who.tenant, here.settings.payload_limit
            )
        await send(connection, calls.replay(job_id, payload, notes, who.tenant, inputs_hash))
        return await the_letter(connection, who, job_id)


async def settle_letter(here: Service, who: Principal, job_id: UUID, call: Call) -> dict[str, Any]:
    """`call` is what is done to it: resolve, ignore, reopen, note or assign."""
    async with here.database.acting(who) as connection:
        await send(connection, call)
        return await the_letter(connection, who, job_id)
