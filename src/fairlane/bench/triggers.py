"""Schedules and events through a real scheduler process: many due at once, a steady stream, none.

The times are the database's own: what was due or emitted when, and what was written when.
"""

import asyncio
import os
import time
from pathlib import Path

from fairlane.bench.line import Bar, Line
from fairlane.bench.process import crew_of
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.waiting import until
from fairlane.bench.world import KIND, World
from fairlane.core import calls
from fairlane.core.connect import connected, send

DUE = 10_000
ALLOWED = 5.0  # seconds for all of them
TENANTS = 100
RATE = 1_000  # events a second
TAKERS = 10
SECONDS = 60
IDLE = 100_000
WATCHED = 60  # seconds
SHARE = 0.01  # of a core
AT_MOST = Bar(1.0, at_most=True)

SCHEDULES = """
insert into fairlane.trigger (tenant_id, label, trigger_type, cron_expr, timezone, definition_key,
                              payload_template, dedupe_window_seconds, next_at, due_at)
select t.id, 's' || n, 'schedule', (n % 60) || ' ' || (n % 24) || ' * * *', 'Europe/Berlin', $1,
       '{"at": "{{schedule.time}}", "tenant": "{{tenant.slug}}"}', 0, $3, $3
  from generate_series(0, $2::int - 1) n
  join fairlane.tenant t on t.slug = 't' || (n % $4::int)
"""
# Each tenant has its own ten; some by pattern, one with a filter.
TAKING = """
insert into fairlane.trigger (tenant_id, label, trigger_type, event_name, filter, definition_key,
                              payload_template, dedupe_window_seconds)
select t.id, 'e' || n, 'event', case when n % 2 = 0 then 'folder.updated' else 'folder.*' end,
       case when n = 0 then '{"size": {"gte": 0}}'::jsonb end, $1,
       jsonb_build_object('provider_id', '{{event.provider_id}}', 'path', '{{event.path}}',
                          'size', '{{event.size}}', 'trigger', n), 0
  from generate_series(0, $2::int - 1) n, fairlane.tenant t
"""


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    return [
        await _due(scratch),
        await _stream(scratch, 10 if quick else SECONDS),
        await _idle(scratch, 10 if quick else WATCHED),
    ]


async def _due(scratch: Scratch) -> Line:
    """All in one minute, and the minute comes while the scheduler watches."""
    async with scratch.world() as world, crew_of(world) as crew:
        say(f"triggers: {DUE:,} schedules due in the same minute")
        await _prepare(world)
        moment = await world.connection.fetchval(
            "select date_trunc('second', clock_timestamp() + interval '8 seconds')"
        )
        await world.connection.execute(SCHEDULES, KIND, DUE, moment, TENANTS)
        await world.connection.execute("update fairlane.trigger set missed = 'once'")
        await world.settle_down()
        # What they are due for is not what their cron says: the plan is taken as it stands.
        await world.connection.execute(
            "update fairlane.trigger set cron_expr = '* * * * *',"
            " next_at = date_trunc('minute', $1::timestamptz) where due_at = $1",
            moment,
        )
        await crew.schedule()
        await until(lambda: _made(world, DUE), "all jobs are there", within=120)
        seconds = await world.connection.fetchval(
            "select extract(epoch from max(fired_at) - $1)::float8 from fairlane.firing"
            " where job_id is not null",
            moment,
        )
    return Line(
        benchmark="triggers",
        case=f"{DUE:,} schedules due at once, until all are enqueued",
        unit="s",
        figure=seconds,
        against=ALLOWED,
        against_what="allowed",
        ratio=seconds / ALLOWED,
        bar=AT_MOST,
        note=f"{DUE / seconds:,.0f} jobs/s",
    )


async def _made(world: World, jobs: int) -> bool:
    count: int = await world.connection.fetchval("select count(*) from fairlane.job")
    return count >= jobs


async def _stream(scratch: Scratch, seconds: int) -> Line:
    """Events at a steady rate; how far behind the last of them is dispatched."""
    async with scratch.world() as world, crew_of(world) as crew:
        say(f"triggers: {RATE:,} events a second for {seconds} s, {TAKERS} triggers each")
        await _prepare(world)
        await world.connection.execute(TAKING, KIND, TAKERS)
        await world.settle_down()
        await crew.schedule()
        emitting = asyncio.create_task(_emit(world, seconds))
        waiting = []
        while not emitting.done():
            await asyncio.wait([emitting], timeout=1)
            left = await world.connection.fetchval("select count(*) from fairlane.emission")
            waiting.append(left)
        took = emitting.result()
        await until(
            lambda: _dispatched(world, seconds * RATE * TAKERS), "all are dispatched", within=300
        )
        worst, last = await world.connection.fetchrow(
            "select max(extract(epoch from d.delivered_at - e.emitted_at))::float8,"
            " extract(epoch from max(d.delivered_at) - max(e.emitted_at))::float8"
            " from fairlane.delivery d join fairlane.event e on e.seq = d.event_seq"
        ) or (0.0, 0.0)
    return Line(
        benchmark="triggers",
        case=f"{RATE:,} events/s, {TAKERS} triggers each, {seconds} s: the farthest behind",
        unit="s",
        figure=worst,
        against=ALLOWED,
        against_what="allowed",
        ratio=worst / ALLOWED,
        bar=AT_MOST,
        note=f"emitted in {took:.1f} s, the last dispatched {last:.2f} s later; "
        f"waiting at most {max(waiting):,}",
    )


async def _emit(world: World, seconds: int) -> float:
    """From a connection of its own, a call every twentieth of a second."""
    step = RATE // 20
    start = time.monotonic()
    async with connected(world.url, name="fairlane bench") as connection:
        for number in range(seconds * 20):
            events = [
                {
                    "tenant": f"t{(number * step + n) % TENANTS}",
                    "name": "folder.updated",
                    "data": {"provider_id": f"p-{n}", "path": f"/photos/{number}", "size": n},
                }
                for n in range(step)
            ]
            await send(connection, calls.emit(events))
            await asyncio.sleep(max(0.0, start + (number + 1) / 20 - time.monotonic()))
    return time.monotonic() - start


async def _dispatched(world: World, deliveries: int) -> bool:
    left = await world.connection.fetchval("select count(*) from fairlane.emission")
    if left:
        return False
    count: int = await world.connection.fetchval("select count(*) from fairlane.delivery")
    if count != deliveries:
        raise RuntimeError(f"{count:,} deliveries, not {deliveries:,}")
    return True


async def _idle(scratch: Scratch, seconds: int) -> Line:
    """The process and its sessions at the database, while nothing is due."""
    async with scratch.world() as world, crew_of(world) as crew:
        say(f"triggers: {IDLE:,} schedules, none due, for {seconds} s")
        await _prepare(world)
        later = await world.connection.fetchval("select clock_timestamp() + interval '1 day'")
        await world.connection.execute(SCHEDULES, KIND, IDLE, later, TENANTS)
        await world.connection.execute("delete from fairlane.trigger where chore is not null")
        await world.settle_down()
        process = await crew.schedule()
        await asyncio.sleep(3)  # what it does at its start is not what it does when idle
        sessions = await world.connection.fetch(
            "select pid from pg_stat_activity where application_name in"
            " ('fairlane scheduler', 'fairlane listener') and datname = current_database()"
        )
        pids = [process.pid, *(row["pid"] for row in sessions)]
        before, start = _cpu(pids), time.monotonic()
        await asyncio.sleep(seconds)
        share = (_cpu(pids) - before) / (time.monotonic() - start)
    return Line(
        benchmark="triggers",
        case=f"{IDLE:,} schedules and none due: a core's share",
        unit="%",
        figure=share * 100,
        against=SHARE * 100,
        against_what="allowed",
        ratio=share / SHARE,
        bar=AT_MOST,
        note="the process and its sessions at the database",
    )


def _cpu(pids: list[int]) -> float:
    """The seconds of processor time that processes have had; those of another machine have none."""
    ticks = 0
    for pid in pids:
        path = Path(f"/proc/{pid}/stat")
        if path.exists():
            fields = path.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def _prepare(world: World) -> None:
    await world.prepare()
    await world.add_tenants(TENANTS)
