"""The system under test: a database, a pooler, a server, schedulers and workers, as processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from fairlane.access import tokens
from fairlane.access.roles import Role
from fairlane.core.connect import connected
from fairlane.core.migrate import migrate
from fairlane.scheduler import store
from faults import bodies, postgres
from faults.broken import BUILDS
from faults.database import AWAY, DatabaseWitness
from faults.plan import LIMITS, TENANTS, Shape
from faults.processes import Process, keep_running, marked
from faults.proxy import Proxy
from support.pgbouncer import PgBouncer
from support.ports import free_port
from support.programs import path_of

APP = "faults.tasks:app"
MARK = "FAULTS_MARK"


class System:
    """What runs, and where to reach it."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        self.folder = folder
        self.shape = shape
        self.mark = f"faults-{secrets.token_hex(6)}"
        self.bodies = folder / "bodies.jsonl"
        self.postgres = postgres.made(folder / "home")
        self.pooler: PgBouncer | None = None
        self.proxies: dict[str, Proxy] = {}
        self.server_port = free_port()
        self.operator = ""
        self.members: dict[str, str] = {}
        self.processes: dict[str, Process] = {}
        self.restarting = asyncio.Lock()  # one at a time
        self.witness = DatabaseWitness(self.postgres.url("postgres"))

    # Whom to hit -----------------------------------------------------------

    def named(self, prefix: str) -> list[Process]:
        return [each for name, each in self.processes.items() if name.startswith(prefix)]

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    async def admin(self) -> asyncpg.Connection:
        """Past proxy and pooler, as one who may do anything."""
        return await asyncpg.connect(
            self.postgres.url("postgres"),
            timeout=10,
            server_settings={"application_name": "nemesis"},
        )

    # Coming and going --------------------------------------------------------

    async def start(self) -> None:
        self.bodies.touch()
        self.bodies.chmod(0o666)
        self.postgres.launch()
        await postgres.ready(self.postgres)
        await migrate(self.postgres.url())
        await self.witness.begin()
        await self._seed()
        for name in ("workers", "crew", "server", "clients"):
            proxy = Proxy(*self.postgres.target)
            proxy.__enter__()
            self.proxies[name] = proxy
        if path_of("pgbouncer") is not None:
            self.pooler = PgBouncer(self.postgres.url(), self.folder, servers=8)
            self.pooler.launch()
        self._man()
        for process in self.processes.values():
            process.start()
        await self._until_at_work()

    async def _seed(self) -> None:
        from faults.tasks import app
        from faults.world import definitions, triggers

        async with connected(self.postgres.url()) as connection:
            for slug, limit in zip(TENANTS, LIMITS, strict=True):
                await connection.execute("select fairlane.create_tenant($1, 'pro')", slug)
                await connection.execute(
                    "select fairlane.set_tenant($1, jsonb_build_object('max_running', $2::int))",
                    slug,
                    limit,
                )
                made = await tokens.create(connection, Role.ADMIN, tenant=slug)
                self.members[slug] = made.token
            made = await tokens.create(connection, Role.OPERATOR)
            self.operator = made.token
            await connection.execute(
                "update fairlane.queue set max_backlog_per_tenant = null,"
                " starts_per_minute_per_tenant = null"
            )
            # Seen by the witness: nothing of them is new.
            await connection.execute("update fairlane.plan set updated_at = updated_at")
        app._database_url = self.postgres.url()
        await app.register()
        await app.apply_definitions(definitions(self.bodies))
        await app.close()
        async with connected(self.postgres.url()) as connection:
            for tenant, written in triggers():
                await store.create(connection, tenant, written)
            if self.shape.broken:
                await BUILDS[self.shape.broken].what.apply(connection)

    def _man(self) -> None:
        """Give every post its process."""
        common = {
            "FAIRLANE_LEASE_SECONDS": str(self.shape.lease),
            "FAIRLANE_GRACE_SECONDS": str(self.shape.grace),
            "FAIRLANE_POLL_SECONDS": "0.5",
            "FAIRLANE_LOG_LEVEL": "info",
            bodies.VARIABLE: str(self.bodies),
            MARK: self.mark,
        }

        def post(name: str, url: str, *words: str) -> None:
            environment = {**common, "FAIRLANE_DATABASE_URL": url}
            self.processes[name] = Process(name, words, self.folder, environment)

        direct = self.postgres.url()
        queues = ("--queue", "default=6", "--queue", "critical=2", "--queue", "bulk=2")
        work = ("worker", "--app", APP, *queues)
        for nth in range(self.shape.workers):
            post(f"worker-{nth}", self.proxies["workers"].url(direct), *work)
        if self.shape.supervised:
            count = str(self.shape.supervised)
            post("crew", self.proxies["crew"].url(direct), *work, "--processes", count)
        if self.pooler is not None:
            for nth in range(self.shape.pooled):
                post(f"pooled-{nth}", self.pooler.url, *work)
        for nth in range(self.shape.schedulers):
            through = self.proxies["crew"].url(direct) if nth else direct
            post(f"scheduler-{nth}", through, "scheduler")
        address = ("--port", str(self.server_port))
        post("server", self.proxies["server"].url(direct), "server", *address)

    async def _until_at_work(self) -> None:
        workers = self.shape.workers + self.shape.supervised
        workers += self.shape.pooled if self.pooler else 0
        async with connected(self.postgres.url()) as connection, asyncio.timeout(90):
            while True:
                live: int = await connection.fetchval(
                    "select count(*) from fairlane.worker where state = 'live'"
                )
                if live >= workers and await self.answers():
                    return
                await asyncio.sleep(0.1)

    async def answers(self) -> bool:
        """Whether the server's port is open."""
        with contextlib.suppress(OSError, TimeoutError):
            _, writer = await asyncio.wait_for(
                asyncio.open_connection("127.0.0.1", self.server_port), 2
            )
            writer.close()
            return True
        return False

    async def stop_processes(self) -> list[int]:
        """Stop everything but the database, in good order; the processes that are left."""
        for process in self.processes.values():
            process.held = True
            process.signal(signal.SIGCONT)
            process.signal(signal.SIGTERM)
        await asyncio.gather(*(each.gone(15) for each in self.processes.values()))
        return marked(f"{MARK}={self.mark}")

    def end(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        for process in self.processes.values():
            process.held = True
        for pid in marked(f"{MARK}={self.mark}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for proxy in self.proxies.values():
            proxy.__exit__(None, None, None)
        self.proxies = {}
        if self.pooler is not None:
            self.pooler.kill()
        self.postgres.stop()


@asynccontextmanager
async def running(shape: Shape) -> AsyncIterator[System]:
    """A system that is at work, watched over, and gone after the block."""
    folder = Path(tempfile.mkdtemp(prefix="fairlane-faults-"))
    folder.chmod(0o755)
    system = System(folder, shape)
    tasks: list[asyncio.Task[None]] = []
    try:
        await system.start()
        tasks = [
            asyncio.create_task(keep_running(list(system.processes.values()))),
            asyncio.create_task(system.witness.run()),
        ]
        yield system
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        system.end()
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["AWAY", "System", "running"]
