"""A hundred open pages at one server process: how soon each shows a change."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles

from fairlane.bench.line import Bar, Line
from fairlane.bench.progress import say
from fairlane.bench.reader import Reader, serving, somebody_of
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import World

PAGES = 100
TENANTS = 10
CHANGES = 30
PATIENCE = 30.0
AGAIN = 2.0  # as live.js does
MEDIAN = 300  # ms


@dataclass
class OpenPage:
    """The jobs of a tenant, kept open: it fetches its table anew when it is told to."""

    reader: Reader
    tenant: str
    shown: asyncio.Condition = field(default_factory=asyncio.Condition)
    html: str = ""

    async def stay(self) -> None:
        async with aclosing(self.reader.events(f"jobs:{self.tenant}")) as events:
            async for event in events:
                if event == "dirty":
                    html = await self._fetched()
                    async with self.shown:
                        self.html = html
                        self.shown.notify_all()

    async def _fetched(self) -> str:
        while True:
            if html := await self.reader.region(f"/t/{self.tenant}/jobs", "jobs"):
                return html
            await asyncio.sleep(AGAIN)

    async def shows(self, job: str) -> float:
        async with asyncio.timeout(PATIENCE), self.shown:
            await self.shown.wait_for(lambda: job in self.html)
        return time.perf_counter()


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    async with scratch.world() as world:
        await world.prepare()
        await world.add_tenants(TENANTS)
        await world.fill(1000, TENANTS)
        async with serving(world) as address, _open(world, address) as pages:
            say(f"live: {PAGES} pages stand open")
            changes = CHANGES // 3 if quick else CHANGES
            one = [await _change(world, pages, [f"t{n % TENANTS}"]) for n in range(changes)]
            everybody = [f"t{n}" for n in range(TENANTS)]
            every = [await _change(world, pages, everybody) for _ in range(changes)]
    return [
        _line(f"{PAGES} open pages, a change for {PAGES // TENANTS} of them", one, barred=True),
        _line(f"{PAGES} open pages, a change for all of them", every, barred=False),
    ]


@asynccontextmanager
async def _open(world: World, address: str) -> AsyncIterator[list[OpenPage]]:
    async with AsyncExitStack() as stack:
        pages = []
        for n in range(PAGES):
            tenant = f"t{n % TENANTS}"
            reader = await stack.enter_async_context(somebody_of(world, address, tenant))
            pages.append(OpenPage(reader, tenant))
        async with asyncio.TaskGroup() as group:
            open_pages = [group.create_task(page.stay()) for page in pages]
            for page in pages:  # a page fetches itself when its stream has opened
                await page.shows("row-")
            yield pages
            for each in open_pages:
                each.cancel()


async def _change(world: World, pages: list[OpenPage], tenants: list[str]) -> list[float]:
    """Seconds from the commit of new jobs to each page that shows its own."""
    start = time.perf_counter()
    made = {tenant: await world.enqueue_one(tenant) for tenant in tenants}
    waits = [page.shows(made[page.tenant]) for page in pages if page.tenant in made]
    return [at - start for at in await asyncio.gather(*waits)]


def _line(case: str, changes: list[list[float]], *, barred: bool) -> Line:
    seen = [seconds * 1e3 for change in changes for seconds in change]
    middle = median(seen)
    note = f"p95 {quantiles(seen, n=20)[-1]:.0f} ms, last {max(seen):.0f} ms"
    ratio, bar = (middle / MEDIAN, Bar(1.0, at_most=True)) if barred else (None, None)
    return Line("live", case, "ms", middle, MEDIAN, "at most", ratio, bar, note)
