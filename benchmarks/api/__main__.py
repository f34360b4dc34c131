"""`python -m benchmarks.api`: POST /jobs beside a bare route, GET /jobs with many jobs and few.

The two sides take turns on the same server in one run; it is their ratio that counts. Uses
FAIRLANE_DATABASE_URL, whose role may create databases, or a PostgreSQL of its own.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx2
from benchmarks.api.load import Load, Measured

from fairlane import config
from fairlane.access import tokens
from fairlane.access.roles import Role
from fairlane.api.serving import address_of, listen
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import World
from fairlane.core import calls
from fairlane.core.connect import connected, send

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = float(os.environ.get("SECONDS", "4"))
MANY = int(os.environ.get("MANY", "1000000"))
FEW = 1000
BODY = '{"definition_key": "a.task", "payload": {"report_id": 7, "fmt": "pdf"}}'

HISTORY = """
insert into fairlane.history
  (id, tenant_id, definition_id, queue, status, priority, payload, scheduled_for, created_at,
   queued_at, started_at, finished_at, attempt, forgiven, lost, max_attempts, source, replays,
   correlation_id, inputs_hash, result)
select fairlane.uuid7(at), t.id, d.id, 'default',
       case when n % 50 = 0 then 'failed' else 'succeeded' end, 100,
       '{"report_id": 7, "fmt": "pdf"}', at, at, at, at, at, 1, 0, 0, 3, 'manual', 0,
       'c-' || n, md5(n::text), '{"ok": true}'
  from generate_series(1, $1) n
 cross join lateral (select fairlane.clock() - ($1 - n) * interval '0.3 seconds') a (at)
 cross join fairlane.tenant t
 cross join fairlane.definition d
 where t.slug = 'acme'
"""


@contextmanager
def serving(words: list[str], url: str) -> Iterator[str]:
    """A server process on a port that was free a moment ago; its address."""
    with listen("127.0.0.1", 0) as listening:
        address = address_of(listening)
    environment = {"FAIRLANE_DATABASE_URL": url, "FAIRLANE_API_RATE": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", *words, "--port", address.rpartition(":")[2]],
        env=os.environ | environment | {"FAIRLANE_LOG_LEVEL": "warning"},
        stdout=subprocess.DEVNULL,
    )
    try:
        yield address
    finally:
        process.terminate()
        process.wait()


@asynccontextmanager
async def swept(world: World) -> AsyncIterator[None]:
    """What the leader does once a second in an installation."""

    async def sweep() -> None:
        async with connected(world.url, name="fairlane bench") as connection:
            while True:
                await connection.fetchval("select fairlane.sweep(true)")
                await asyncio.sleep(1)

    task = asyncio.create_task(sweep())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def prepared(world: World) -> str:
    """A tenant, a definition with a schema, and the token of a member."""
    await send(world.connection, calls.create_tenant("acme", "pro", "", {}))
    await send(world.connection, calls.set_queue("default", {"max_backlog_per_tenant": None}))
    schema = {
        "type": "object",
        "properties": {"report_id": {"type": "integer"}, "fmt": {"type": "string"}},
        "required": ["report_id"],
    }
    await send(world.connection, calls.define([{"key": "a.task", "arg_schema": schema}]))
    return (await tokens.create(world.connection, Role.MEMBER, tenant="acme")).token


async def until_up(address: str, path: str) -> None:
    async with httpx2.AsyncClient() as http:
        for _ in range(600):
            with suppress(httpx2.TransportError):
                if (await http.get(f"{address}{path}")).status_code < 500:
                    return
            await asyncio.sleep(0.05)
    raise SystemExit(f"{address} did not come up")


async def posts(scratch: Scratch) -> None:
    bare_words = ["uvicorn", "benchmarks.api.bare:app", "--no-access-log", "--log-level", "warning"]
    bare_words += ["--loop", "uvloop", "--http", "httptools"]
    async with scratch.world() as world:
        token = await prepared(world)
        async with swept(world):
            with (
                serving(["fairlane", "server"], world.url) as ours,
                serving(bare_words, world.url) as bare,
            ):
                await until_up(ours, "/readyz")
                await until_up(bare, "/docs")
                api = Load(f"{ours}/api/v1/jobs", token, BODY)
                least = Load(f"{bare}/jobs", token, BODY)
                for connections in (1, 64):
                    await compare(connections, api, least)


async def compare(connections: int, api: Load, least: Load) -> None:
    ratios, ours, theirs = [], [], []
    for each in (api, least):
        await each.run(connections, 1)
    for _ in range(ROUNDS):
        mine, other = await api.run(connections, SECONDS), await least.run(connections, SECONDS)
        ours.append(mine.per_second)
        theirs.append(other.per_second)
        ratios.append(mine.per_second / other.per_second)
    print(
        f"POST /jobs, {connections:>2} connections: {statistics.median(ours):7.0f}/s, "
        f"bare route {statistics.median(theirs):7.0f}/s, ratio {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )


async def gets(scratch: Scratch) -> None:
    paths = {
        "GET /jobs": "/api/v1/jobs",
        "GET /jobs?status=failed": "/api/v1/jobs?status=failed",
        "GET /jobs?correlation_id=": "/api/v1/jobs?correlation_id=c-500",
        "GET /jobs?definition_key=": "/api/v1/jobs?definition_key=a.task",
        "GET /jobs/summary": "/api/v1/jobs/summary",
    }
    async with scratch.world() as few, scratch.world() as many:
        found = {}
        for world, jobs in ((few, FEW), (many, MANY)):
            found[jobs] = await prepared(world)
            await world.connection.execute("set session synchronous_commit = off")
            await world.connection.execute(HISTORY.replace("$1", str(jobs)))
            await world.connection.execute("vacuum analyze")
        with (
            serving(["fairlane", "server"], few.url) as small,
            serving(["fairlane", "server"], many.url) as large,
        ):
            await until_up(small, "/readyz")
            await until_up(large, "/readyz")
            for name, path in paths.items():
                little, much = [], []
                for _ in range(ROUNDS):
                    little.append(await Load(f"{small}{path}", found[FEW]).run(2, SECONDS))
                    much.append(await Load(f"{large}{path}", found[MANY]).run(2, SECONDS))
                told(name, little, much)


def told(name: str, little: list[Measured], much: list[Measured]) -> None:
    small = statistics.median(each.p99_ms for each in little)
    large = statistics.median(each.p99_ms for each in much)
    print(
        f"{name:<26} p99 {large:6.1f} ms with {MANY:,} jobs, {small:6.1f} ms with {FEW:,}, "
        f"ratio {large / small:.2f}; {statistics.median(m.per_second for m in much):.0f}/s",
        flush=True,
    )


async def main(what: list[str]) -> None:
    @asynccontextmanager
    async def database() -> AsyncIterator[str]:
        if url := config.load().database_url:
            yield url
            return
        from fairlane.embedded import Embedded

        # On a disk: what is acknowledged is on it, and both sides pay for that.
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # noqa: PTH101
            with Embedded(Path(folder, "home")) as url:
                yield url

    async with database() as url, Scratch.beside(url) as scratch:
        if not what or "post" in what:
            await posts(scratch)
        if not what or "get" in what:
            await gets(scratch)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
