"""Works in this process until nothing can run any more: the parts of a worker, step by step."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from fairlane.app import Fairlane
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import pool
from fairlane.errors import FairlaneError
from fairlane.worker.attempt import Stop
from fairlane.worker.life import Life, Terms

# A test that moves the clock while jobs run does not mean that their worker is dead.
LEASE = 86_400.0
STOPPING = 5.0  # seconds
BEAT = 0.05

# One statement sees one moment: a job on its way from one of these places to the next is in one.
BUSY = """
select exists (select from fairlane.job
                where status = 'running'
                   or (status = 'scheduled' and scheduled_for <= fairlane.clock()))
    or exists (select from fairlane.arrival where queued > 0)
    or exists (select
                 from fairlane.lane l
                 join fairlane.share s on s.id = l.share_id
                 join fairlane.queue q on q.name = l.queue
                where l.state = 'ready'
                  and s.ready
                  and q.paused_at is null
                  and q.name = any ($1))
"""

LEFT = """
select format('%s of "%s" %s', count(*), definition_key, status)
  from fairlane.jobs
 where status in ('queued', 'running')
 group by definition_key, status
 order by 1
 limit 5
"""


class NotDrained(FairlaneError):
    """Jobs still ran when the time was over."""


async def drain(url: str, app: Fairlane, queues: Mapping[str, int] | None, within: float) -> None:
    async with _at_work(url, app, queues) as life:
        try:
            async with asyncio.timeout(within):
                while await _busy(life):
                    await life.claimer.tick()
                    await _rest(life)
        except TimeoutError:
            left = ", ".join(row[0] for row in await life.send(Call(LEFT)))
            raise NotDrained(
                f"not drained within {within:g} s: {left or 'they make more and more jobs'}"
            ) from None


@asynccontextmanager
async def _at_work(
    url: str, app: Fairlane, queues: Mapping[str, int] | None
) -> AsyncIterator[Life]:
    """A worker that claims when it is told to."""
    app.check_tasks()
    connections = await pool(url, most=6, name="fairlane drain")
    for_tasks = await pool(url, most=100, name="fairlane task", for_others=True)
    try:
        rows = await connections.fetch("select name, slots from fairlane.queue")
        slots = queues or {row["name"]: row["slots"] for row in rows}
        terms = Terms(app=app, url=url, queues=dict(slots), name="drain", lease_seconds=LEASE)
        life = Life(terms, connections, for_tasks)
        await life.register()
        working = [asyncio.create_task(part) for part in life.parts()]
        try:
            yield life
        finally:
            await _stop(life)
            for part in working:
                part.cancel()
            await life.close()
    finally:
        for each in (connections, for_tasks):
            with suppress(TimeoutError):
                await asyncio.wait_for(each.close(), STOPPING)
            each.terminate()


async def _busy(life: Life) -> bool:
    # What a leader does: rescue, promote, sweep.
    await life.send(Call("select fairlane.tick()"))
    return bool((await life.send(Call(BUSY, (list(life.slots.sizes),))))[0][0])


async def _rest(life: Life) -> None:
    """Until a job has ended, or it is time to see whether one was canceled."""
    if life.runner.running:
        life.changed.clear()
        try:
            async with asyncio.timeout(BEAT):
                await life.changed.wait()
        except TimeoutError:
            life.on_beat(await life.send(calls.beat(life.id)))
    await life.finisher.written()


async def _stop(life: Life) -> None:
    life.runner.stop_all(Stop.SHUTDOWN)
    await life.quiet(STOPPING)
    with suppress(TimeoutError):
        async with asyncio.timeout(STOPPING):
            await life.finisher.written()
    await life.send(calls.stop_worker(life.id))
