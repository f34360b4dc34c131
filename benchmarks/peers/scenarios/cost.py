"""What a job costs: processor time of worker and server, write-ahead log, statements."""

import sys

import asyncpg
from benchmarks.peers import redis_server
from benchmarks.peers.side import Order
from benchmarks.peers.stage import Stage
from benchmarks.peers.usage import Usage, count_statements, statements

BATCHES = 500  # slots


async def measure(stage: Stage) -> dict[str, float]:
    jobs = max(stage.terms.jobs // 2, 200)
    await stage.side.install(stage.place)
    counting = await count_statements(stage.place.url) if stage.side.unfinished else None
    await stage.side.open(stage.place)
    await stage.fill([Order()] * jobs)
    server = await asyncpg.connect(stage.place.url)
    async with stage.crew() as crew:
        crew.begin()
        ran = 0
        if stage.side.slots < BATCHES:
            # From the first job on: how a worker boots is none of a job's cost. Who claims in
            # batches would get a whole one for nothing, and has many jobs to share its boot.
            ran = await stage.until(crew, lambda: stage.tally.count)
        redis = redis_server.cpu(stage.place.redis) if not stage.side.unfinished else 0
        usage, cpu = await Usage.of(server), crew.cpu
        if counting:
            await counting.execute("select pg_stat_statements_reset()")
        await stage.all_done(crew, jobs)
        cpu, after = crew.cpu - cpu, await Usage.of(server)
        top = await statements(counting) if counting else []
    jobs -= ran
    figures = {"worker µs/job": cpu / jobs * 1e6}
    if not stage.side.unfinished:
        return figures | {
            "server µs/job": (redis_server.cpu(stage.place.redis) - redis) / jobs * 1e6
        }
    figures["server µs/job"] = (after.cpu - usage.cpu) / jobs * 1e6
    figures["WAL B/job"] = (after.wal - usage.wal) / jobs
    if top:
        figures["statements/job"] = sum(calls for _, calls, _ in top) / jobs
        for query, calls, ms in top[:6]:
            said = " ".join(query.split())[:90]
            print(f"- {ms:8.0f} ms {calls:7} x {said}", file=sys.stderr, flush=True)
    return figures
