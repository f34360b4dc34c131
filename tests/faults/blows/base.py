"""What every blow has at hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from faults.clients import Clients
from faults.system import System

Done = tuple[str, bool, dict[str, Any]]  # whom it hit, whether that was seen, what else to keep


class Blow:
    system: System
    clients: Clients

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await self.system.admin()
        try:
            yield connection
        finally:
            connection.terminate()

    async def seen(self, condition: Callable[[], Any], within: float = 5.0) -> bool:
        try:
            async with asyncio.timeout(within):
                while not condition():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
        return True
