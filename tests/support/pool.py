"""A pool of slots that runs jobs in simulated time: the clock jumps from one end to the next."""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from support.clock import Clock
from support.core import Core, Lease


@dataclass
class Pool:
    core: Core
    clock: Clock
    worker: UUID
    slots: int
    seconds: Callable[[Lease], float]
    claim_size: int | None = None
    queue: str = "default"

    jobs: Counter[str] = field(default_factory=Counter)
    worked: dict[str, float] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    async def run(self, *, until: float) -> None:
        """Keep every slot busy for so many seconds; count jobs and worker seconds by tenant."""
        numbers = itertools.count()
        ends: list[tuple[float, int, Lease]] = []
        now = 0.0
        self.clock.freeze()
        while now < until:
            while free := self.slots - len(ends):
                taken = await self.core.claim(
                    self.worker, min(free, self.claim_size or free), self.queue
                )
                for lease in taken:
                    heapq.heappush(ends, (now + self.seconds(lease), next(numbers), lease))
                    self.order.append(lease.tenant)
                if not taken:
                    break
            if not ends:
                break
            end = ends[0][0]
            self.clock.advance(seconds=end - now)
            now = end
            over = []
            while ends and ends[0][0] <= now:
                over.append(heapq.heappop(ends)[2])
            await self.core.finish(*over)
            for lease in over:
                self.jobs[lease.tenant] += 1
                self.worked[lease.tenant] = self.worked.get(lease.tenant, 0) + self.seconds(lease)
        if ends:
            await self.core.hand_back(*(lease for _, _, lease in ends))
            self.clock.advance(seconds=0)

    def shares(self) -> dict[str, float]:
        total = sum(self.worked.values())
        return {tenant: worked / total for tenant, worked in self.worked.items()}
