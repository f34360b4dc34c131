"""Jobs are moved in their lane while workers claim them: each runs once, and none is lost."""

import asyncio
import random
from uuid import UUID

import pytest

from fairlane.errors import JobNotFound, WrongState
from support.core import Core
from support.crew import busy, crew

pytestmark = pytest.mark.race

JOBS, MOVERS, CLAIMERS = 400, 4, 3


async def test_jobs_that_are_moved_while_workers_claim_run_once_each(
    core: Core, database: str
) -> None:
    tenant = await core.a_tenant(max_running=1000)
    kind, worker = await core.a_definition(), await core.a_worker(1000)
    jobs = await core.flood(tenant, kind, JOBS)
    ran: list[UUID] = []
    enough = asyncio.Event()

    async def claim(claimer: Core) -> None:
        while not enough.is_set() or await claimer.one("select true from fairlane.job limit 1"):
            leases = await claimer.claim(worker, 3)
            ran.extend(lease.job_id for lease in leases)
            if leases:
                await claimer.finish(*leases)

    async def move(mover: Core, dice: random.Random) -> str:
        try:
            await mover.set_priority(dice.choice(jobs), dice.choice([None, 1, 50, 150]))
        except (WrongState, JobNotFound) as refused:
            return type(refused).__name__
        return "moved"

    async with crew(database, MOVERS) as movers, crew(database, CLAIMERS) as claimers:
        claiming = [asyncio.create_task(claim(each)) for each in claimers]
        told = await busy(movers, move, 60)
        enough.set()
        async with asyncio.timeout(30):
            await asyncio.gather(*claiming)

    assert sorted(ran) == sorted(jobs)
    assert "moved" in told, "nothing was moved: nothing was shown"
    await core.assert_books_balance()
