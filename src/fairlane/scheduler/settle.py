"""What holds jobs back before they are made: a dedupe window, a run that still goes on; and what
to do when the database refuses some of them."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import asyncpg

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import BacklogFull, FairlaneError
from fairlane.scheduler.making import Made, told
from fairlane.worker.patience import Patience

# The newest job of each trigger that still lives: the one that it remembers, or one of the last
# fifty, should it not have cared until now.
LIVE = """
select asked.tenant_id, asked.trigger_id, live.id
  from unnest($1::uuid[], $2::uuid[]) as asked (tenant_id, trigger_id)
 cross join lateral (
       select j.id
         from ((select d.job_id from fairlane.delivery d
                 where d.trigger_id = asked.trigger_id and d.tenant_id = asked.tenant_id
                 order by d.delivered_at desc limit 50)
                union all
               (select f.job_id from fairlane.firing f
                 where f.trigger_id = asked.trigger_id and f.tenant_id = asked.tenant_id
                 order by f.fired_at desc limit 50)
                union all
               (select r.job_id from fairlane.recent r
                 where r.trigger_id = asked.trigger_id and r.tenant_id = asked.tenant_id
                   and r.payload_hash = 'live')) made
         join fairlane.job j on j.id = made.job_id
        order by j.id desc limit 1) live
"""
LOCK = "select from fairlane.trigger where id = any ($1::uuid[]) order by id for no key update"
# Whatever else is delivered or fired meanwhile, this one is known until another takes its place.
REMEMBER = """
insert into fairlane.recent (tenant_id, trigger_id, payload_hash, job_id, ends_at)
select *, 'infinity'
  from unnest($1::uuid[], $2::uuid[], array_fill('live'::text, array[cardinality($1)]), $3::uuid[])
 order by 1, 2
    on conflict (tenant_id, trigger_id, payload_hash) do update set job_id = excluded.job_id
"""
FORGET = """
delete from fairlane.recent r
 using unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[])
       as gone (tenant_id, trigger_id, payload_hash, job_id)
 where (r.tenant_id, r.trigger_id, r.job_id) = (gone.tenant_id, gone.trigger_id, gone.job_id)
   and r.payload_hash in (gone.payload_hash, 'live')
"""

Keep = Callable[[Sequence[Made]], Awaitable[None]]


async def hold_back(connection: Connection, made: Sequence[Made]) -> None:
    """Take the jobs away that are not to be: their work is done, or goes on."""
    await _skip_what_overlaps(connection, made)
    await _dedupe(connection, made)


async def _skip_what_overlaps(connection: Connection, made: Sequence[Made]) -> None:
    single = [each for each in made if each.job is not None and each.trigger.overlap == "skip"]
    if not single:
        return
    names = list(dict.fromkeys((each.tenant_id, each.trigger.id) for each in single))
    ids = sorted({trigger for _, trigger in names})
    await send(connection, Call(LOCK, (ids,)))
    rows = await send(
        connection, Call(LIVE, ([tenant for tenant, _ in names], [each for _, each in names]))
    )
    live: dict[tuple[UUID, UUID], UUID] = {
        (row["tenant_id"], row["trigger_id"]): row["id"] for row in rows
    }
    new = []
    for each in single:
        name = (each.tenant_id, each.trigger.id)
        if name in live:
            each.drop("skipped", live[name])
        else:
            assert each.job_id is not None
            live[name] = each.job_id
            new.append((*name, each.job_id))
    if new:
        await send(connection, Call(REMEMBER, tuple(map(list, zip(*new, strict=True)))))


async def _dedupe(connection: Connection, made: Sequence[Made]) -> None:
    windowed = [each for each in made if each.job is not None and each.window]
    if not windowed:
        return
    first: dict[tuple[UUID, UUID, str], Made] = {}
    for each in windowed:
        first.setdefault(each.key, each)
    items = [
        {
            "tenant_id": tenant,
            "trigger_id": trigger,
            "payload_hash": text,
            "job_id": each.job_id,
            "seconds": each.window,
        }
        for (tenant, trigger, text), each in first.items()
    ]
    rows = await send(connection, calls.dedupe(items))
    known = {
        (row["tenant_id"], row["trigger_id"], row["payload_hash"]): row["job_id"] for row in rows
    }
    for each in windowed:
        key = each.key
        if key in known:
            each.drop("deduped", known[key])
        elif first[key] is not each:
            each.drop("deduped", first[key].job_id)


async def keep_what_is_taken(
    connection: Connection, made: Sequence[Made], keep: Keep, among: Sequence[Made] | None = None
) -> None:
    """Keep them all; where the database refuses a job, keep the others, and its reason."""
    among = made if among is None else among
    try:
        async with connection.transaction():
            await keep(made)
        return
    except Patience.passing:
        raise
    except (FairlaneError, asyncpg.PostgresError) as error:
        asked = [each for each in made if each.job is not None]
        if not asked:
            raise
        if len(asked) == 1:
            await _refuse(connection, asked[0], among, error)
            await keep_what_is_taken(connection, made, keep, among)
            return
    half = len(made) // 2
    await keep_what_is_taken(connection, made[:half], keep, among)
    await keep_what_is_taken(connection, made[half:], keep, among)


async def _refuse(
    connection: Connection, refused: Made, among: Sequence[Made], error: Exception
) -> None:
    """One, and those that are refused with it; whatever comes after it is not kept yet."""
    said = told(error, None)
    gone = [refused]
    if isinstance(error, BacklogFull):
        # There is no room for the next of the same kind either; to ask for each would take the
        # time of everybody else.
        place = next(n for n, each in enumerate(among) if each is refused)
        gone += [each for each in among[place + 1 :] if each.job and _kind(each) == _kind(refused)]
    rows = [(*each.key, each.job_id) for each in gone]
    await send(connection, Call(FORGET, tuple(map(list, zip(*rows, strict=True)))))
    ids = {each.job_id for each in gone}
    for each in gone:
        each.refuse(said)
    # Those that left the work to it.
    for each in among:
        if each.status in ("deduped", "skipped") and each.job_id in ids:
            each.refuse(said)


def _kind(made: Made) -> tuple[UUID, str, str | None]:
    return made.tenant_id, *made.trigger.definition_name
