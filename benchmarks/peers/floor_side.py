"""The floor: the least that any queue on PostgreSQL must do, in hand-written SQL, without tenants.

One connection claims a batch, a plain loop runs it, the same connection finishes it: no tasks, no
leases, no heartbeats, no retries, no limits. asyncpg on uvloop, as Fairlane's worker, so that the
difference is not the driver's. What is done is kept in a table of history, as Fairlane keeps it.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress

import asyncpg
from benchmarks.peers.job import run
from benchmarks.peers.side import Order, Place, Side

BATCH = 500  # the most that Fairlane's worker reports at once

SCHEMA = """
create table floor_job (
  id bigint generated always as identity primary key,
  status text not null default 'queued',
  payload jsonb not null,
  created_at timestamptz not null default now(),
  started_at timestamptz
);
create index on floor_job (id) where status = 'queued';
create table floor_history (like floor_job, finished_at timestamptz not null, primary key (id));
"""

ENQUEUE = """
with job as (
  insert into floor_job (payload) select * from unnest($1::jsonb[]) returning id
)
select count(*), pg_notify('floor', '') from job
"""

CLAIM = """
with due as (
  select id
    from floor_job
   where status = 'queued'
   order by id
   limit $1
     for update skip locked
)
update floor_job j
   set status = 'running', started_at = now()
  from due
 where j.id = due.id
returning j.id, j.payload
"""

KEEP = """
with done as (
  delete from floor_job where id = any ($1::bigint[]) returning *
)
insert into floor_history
select id, 'succeeded', payload, created_at, started_at, now() from done
"""


class FloorSide:
    unfinished = "select exists (select from floor_job)"
    slots = BATCH
    bulk = True
    blocking = False
    one_at_a_time = False
    finish = KEEP

    async def install(self, place: Place) -> None:
        connection = await asyncpg.connect(place.url)
        await connection.execute(SCHEMA)
        await connection.close()

    async def open(self, place: Place) -> None:
        self.url = place.url
        self.pool = await asyncpg.create_pool(place.url, min_size=1, max_size=16)

    async def enqueue(self, order: Order) -> None:
        await self.enqueue_many([order])

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        await self.pool.execute(ENQUEUE, [json.dumps(order.payload) for order in orders])

    async def work(self, slots: int) -> None:
        listening, woken = await asyncpg.connect(self.url), asyncio.Event()
        await listening.add_listener("floor", lambda *_: woken.set())
        connection = await asyncpg.connect(self.url)
        while True:
            woken.clear()
            rows = await connection.fetch(CLAIM, slots)
            if not rows:
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await woken.wait()
                continue
            jobs = [json.loads(row["payload"]) for row in rows]
            if any(job.get("ms") for job in jobs):
                await asyncio.gather(*(run(job) for job in jobs))
            else:
                for job in jobs:
                    await run(job)
            await connection.execute(self.finish, [row["id"] for row in rows])


def side() -> Side:
    return FloorSide()
