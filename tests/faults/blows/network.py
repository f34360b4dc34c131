"""What a network does: slow, cut, half-open, and an answer that is lost after the commit."""

from __future__ import annotations

import asyncio
import random

from faults import clocks
from faults.blows.base import Blow, Done

BEAT = "fairlane.beat("  # what a heartbeat says


class Network(Blow):
    async def delay(self, dice: random.Random, seconds: float) -> Done:
        return await self._delayed(dice, seconds, dice.uniform(0.1, 0.6), "")

    async def delay_heartbeat(self, dice: random.Random, seconds: float) -> Done:
        name = dice.choice(("workers", "crew"))
        return await self._delayed(dice, seconds, dice.uniform(0.5, 1.5), BEAT, name)

    async def _delayed(
        self, dice: random.Random, seconds: float, late: float, only: str, name: str = ""
    ) -> Done:
        name = name or dice.choice(sorted(self.system.proxies))
        proxy = self.system.proxies[name]
        before = proxy.fired.get("delayed", 0)
        proxy.delay(late, only)
        try:
            await asyncio.sleep(seconds)
        finally:
            proxy.delay(0)
        return name, proxy.fired.get("delayed", 0) > before, {"late": late}

    async def cut(self, dice: random.Random, seconds: float) -> Done:
        name = dice.choice(sorted(self.system.proxies))
        return name, self.system.proxies[name].cut() > 0, {}

    async def blackhole(self, dice: random.Random, seconds: float) -> Done:
        return await self._dark(dice.choice(sorted(self.system.proxies)), seconds)

    async def blackhole_workers(self, dice: random.Random, seconds: float) -> Done:
        return await self._dark("workers", seconds)

    async def _dark(self, name: str, seconds: float) -> Done:
        pids = [each.pid for each in self.system.named("worker") if each.alive]
        proxy = self.system.proxies[name]
        before, at = proxy.fired.get("swallowed", 0), clocks.now()
        proxy.blackhole()
        try:
            await asyncio.sleep(seconds)
        finally:
            proxy.heal()
        worked = proxy.fired.get("swallowed", 0) > before
        return name, worked, {"at": at, "until": clocks.now(), "pids": pids}

    async def lose_acks(self, dice: random.Random, seconds: float) -> Done:
        name = dice.choice(sorted(self.system.proxies))
        proxy = self.system.proxies[name]
        before = proxy.fired.get("lost_acks", 0)
        proxy.lose_acks(dice.randint(1, 4))
        await asyncio.sleep(seconds)
        lost = proxy.fired.get("lost_acks", 0) - before
        proxy.lose_acks(0)
        return name, lost > 0, {"lost": lost}
