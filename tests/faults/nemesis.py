"""The nemesis: does to the system what a plan says, sees to it that it was done, and writes it down
(the witness N) before and after."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any

import asyncpg

from faults import clocks
from faults.blows.database import Database
from faults.blows.jobs import Jobs
from faults.blows.network import Network
from faults.blows.people import People
from faults.blows.processes import Processes
from faults.clients import Clients
from faults.history import Injected
from faults.plan import Fault
from faults.system import System


class Nemesis(Processes, Database, Network, Jobs, People):
    """One method a kind; each answers whom it hit, whether that was seen, and what else to keep."""

    def __init__(self, system: System, clients: Clients) -> None:
        self.system = system
        self.clients = clients
        self.injected: list[Injected] = []
        self._log = system.folder / "nemesis.jsonl"

    async def inflict(self, fault: Fault) -> None:
        began = clocks.now()
        self._write({"begins": fault.kind, "at": began, **asdict(fault)})
        worked, target, detail = False, "", {}
        try:
            blow = getattr(self, fault.kind)
            async with asyncio.timeout(40):
                target, worked, detail = await blow(random.Random(fault.pick), fault.seconds)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            detail = {"error": repr(error)}  # another fault was in its way
        except asyncpg.InternalClientError as error:
            detail = {"error": repr(error)}
        done = Injected(fault.kind, target, began, clocks.now(), worked, detail)
        self.injected.append(done)
        self._write({"ended": fault.kind, **asdict(done)})

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
            await connection.close()
            return
        raise RuntimeError("the database does not come back")

    def _write(self, line: dict[str, Any]) -> None:
        with Path(self._log).open("a") as file, contextlib.suppress(TypeError):
            file.write(json.dumps(line, default=str) + "\n")


__all__ = ["Nemesis"]
