"""The nemesis: does to the system what a plan says, sees to it that it was done, and writes it down
(the witness N) before and after."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import asyncpg

from faults import clocks
from faults.blows.base import Done
from faults.blows.database import Database
from faults.blows.jobs import Jobs
from faults.blows.network import Network
from faults.blows.people import People
from faults.blows.processes import Processes
from faults.blows.stale import Stale
from faults.clients import Clients
from faults.history import Injected
from faults.plan import Fault
from faults.system import System

PATIENCE = 45.0  # seconds in which a fault is to come about
# What is left over is to be done soon, not to wait at gates.
ROOM = "select fairlane.set_tenant(slug, '{\"max_running\": 10}') from fairlane.tenant"


class Nemesis(Processes, Database, Network, Jobs, Stale, People):
    """One method a kind; each answers whom it hit, whether that was seen, and what else to keep."""

    def __init__(self, system: System, clients: Clients) -> None:
        self.system = system
        self.clients = clients
        self.injected: list[Injected] = []
        self._log = system.folder / "nemesis.jsonl"

    async def inflict(self, fault: Fault) -> None:
        began = clocks.now()
        self._write({"begins": fault.kind, "at": began, **asdict(fault)})
        target, worked, detail = await self._strike(fault, 0)
        nth = 0
        while not worked and clocks.now() < began + PATIENCE:
            await asyncio.sleep(1)  # another fault was in its way
            target, worked, detail = await self._strike(fault, nth := nth + 1)
        done = Injected(fault.kind, target, began, clocks.now(), worked, detail)
        self.injected.append(done)
        self._write({"ended": fault.kind, **asdict(done)})

    async def _strike(self, fault: Fault, nth: int) -> Done:
        blow: Callable[[random.Random, float], Awaitable[Done]] = getattr(self, fault.kind)
        try:
            async with asyncio.timeout(40):
                return await blow(random.Random(fault.pick + nth), fault.seconds)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            return "", False, {"error": repr(error)}
        except asyncpg.InternalClientError as error:
            return "", False, {"error": repr(error)}

    async def heal(self) -> None:
        """Everything as it should be, by whatever means."""
        for proxy in self.system.proxies.values():
            proxy.heal()
        for process in self.system.processes.values():
            process.signal(signal.SIGCONT)
            process.held = False
        for _ in range(100):
            try:
                connection = await self.system.admin()
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(0.1)
                continue
            await connection.execute("select fairlane.resume_queue(name) from fairlane.queue")
            await connection.execute("select fairlane.resume_tenant(slug) from fairlane.tenant")
            await connection.execute(ROOM)
            await connection.close()
            return
        raise RuntimeError("the database does not come back")

    def _write(self, line: dict[str, Any]) -> None:
        with Path(self._log).open("a") as file, contextlib.suppress(TypeError):
            file.write(json.dumps(line, default=str) + "\n")


__all__ = ["Nemesis"]
