"""The leader's figures, taken at once: for tests that do not want to wait for the next minute."""

import asyncio

from support.clock import Clock
from support.core import Core

OPEN = """
select count(*) from fairlane.slice
 where not is_final and ends_at <= fairlane.clock() - interval '2 minutes'
"""


async def counted(core: Core, clock: Clock, *, within: float = 30) -> None:
    """Let three minutes pass and count, until all before that is counted for good.

    Transactions of other tests on the same server may hold that up for a moment.
    """
    clock.advance(minutes=3)
    async with asyncio.timeout(within):
        await core.one("select fairlane.count_ended(10)")
        while await core.one(OPEN):
            await core.fetch("update fairlane.slice set count_at = '-infinity' where not is_final")
            await core.one("select fairlane.count_ended(10)")
