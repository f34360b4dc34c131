"""kill -9, SIGTERM, and SIGSTOP with SIGCONT long after."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from uuid import uuid4

from faults import clocks
from faults.blows.base import Blow, Done
from faults.processes import Process, children_of, state_of

JUST_BEGUN = """
select w.pid from fairlane.job j join fairlane.worker w on w.id = j.worker_id
  join fairlane.definition d on d.id = j.definition_id
 where j.status = 'running' and d.key = 'long'
   and j.started_at > fairlane.clock() - interval '1 second'
"""


class Processes(Blow):
    async def kill_worker(self, dice: random.Random, seconds: float) -> Done:
        return await self._end(dice, ("worker", "pooled"), signal.SIGKILL, seconds)

    async def kill_supervisor(self, dice: random.Random, seconds: float) -> Done:
        (crew,) = self.system.named("crew")
        children = children_of(crew.pid) if crew.alive else []
        target, worked, detail = await self._end(dice, ("crew",), signal.SIGKILL, seconds)
        # They are told by the kernel, and stop in good order.
        left = not await self.seen(lambda: not any(map(_runs, children)), 20)
        return target, worked and not left, {**detail, "orderly": children, "pids": []}

    async def kill_server(self, dice: random.Random, seconds: float) -> Done:
        return await self._end(dice, ("server",), signal.SIGKILL, seconds)

    async def kill_scheduler(self, dice: random.Random, seconds: float) -> Done:
        return await self._end(dice, ("scheduler",), signal.SIGKILL, seconds)

    async def term_worker(self, dice: random.Random, seconds: float) -> Done:
        """One that has just begun what outlasts the grace, if there is any."""
        busy: list[Process] = []
        end = clocks.now() + 3
        while not busy and clocks.now() < end:
            async with self.admin() as connection:
                pids = {row["pid"] for row in await connection.fetch(JUST_BEGUN)}
            busy = [each for each in self._alive(("worker", "pooled")) if each.pid in pids]
            await asyncio.sleep(0.05)
        prefixes = tuple(each.name for each in busy) or ("worker", "pooled")
        return await self._end(dice, prefixes, signal.SIGTERM, seconds)

    async def term_server(self, dice: random.Random, seconds: float) -> Done:
        return await self._end(dice, ("server",), signal.SIGTERM, seconds)

    async def kill_child(self, dice: random.Random, seconds: float) -> Done:
        (crew,) = self.system.named("crew")
        children = sorted(children_of(crew.pid)) if crew.alive else []
        if not children:
            return "crew", False, {}
        pid = dice.choice(children)
        at = clocks.now()
        os.kill(pid, signal.SIGKILL)
        return (
            f"crew child {pid}",
            await self.seen(lambda: not _runs(pid)),
            {"pids": [pid], "at": at},
        )

    async def stop_worker(self, dice: random.Random, seconds: float) -> Done:
        crew = self.system.named("crew")
        pids = [each.pid for each in self._alive(("worker", "pooled"))]
        pids += [child for each in crew if each.alive for child in children_of(each.pid)]
        return await self._pause(dice.choice(sorted(pids)), seconds) if pids else ("", False, {})

    async def stop_scheduler(self, dice: random.Random, seconds: float) -> Done:
        pids = [each.pid for each in self._alive(("scheduler",))]
        return await self._pause(dice.choice(sorted(pids)), seconds) if pids else ("", False, {})

    async def same_name(self, dice: random.Random, seconds: float) -> Done:
        """One that calls itself as another that lives, and dies at once: the other lives on."""
        async with self.admin() as connection:
            row = await connection.fetchrow(
                "select name, pid from fairlane.worker where state = 'live'"
                " order by random() limit 1"
            )
            if row is None:
                return "", False, {}
            await connection.execute(
                "select fairlane.register_worker($1, $2, pid => -$3::int, lease_seconds => 1)",
                uuid4(),
                row["name"],
                row["pid"],
            )
            return row["name"], True, {}

    async def _pause(self, pid: int, seconds: float) -> Done:
        at = clocks.now()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        stopped = await self.seen(lambda: state_of(pid) == "T", 1)
        try:
            await asyncio.sleep(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        return str(pid), stopped, {"pids": [pid], "at": at, "until": clocks.now()}

    async def _end(
        self, dice: random.Random, prefixes: tuple[str, ...], how: signal.Signals, seconds: float
    ) -> Done:
        found = self._alive(prefixes)
        if not found:
            return "", False, {}
        process = dice.choice(found)
        process.held = True
        try:
            at, pid = clocks.now(), process.pid
            process.signal(how)
            gone = await process.gone(30)
            detail = {"pids": [pid], "at": at, "gone": clocks.now()}
            await asyncio.sleep(seconds)
        finally:
            process.held = False
        return process.name, gone, detail

    def _alive(self, prefixes: tuple[str, ...]) -> list[Process]:
        found = [each for prefix in prefixes for each in self.system.named(prefix)]
        return [each for each in found if each.alive and not each.held]


def _runs(pid: int) -> bool:
    return state_of(pid) not in ("", "Z")
