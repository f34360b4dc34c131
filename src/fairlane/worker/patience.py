"""What to do while the database is away: wait a little, then a little longer, with jitter."""

import asyncio
import random

import asyncpg

from fairlane.errors import DatabaseUnavailable

# The connection broke, or the server is stopping, starting, full, or undid us to break a deadlock.
PASSING: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    DatabaseUnavailable,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what it says when the server ends a connection that was idle
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
    asyncpg.exceptions.TransactionRollbackError,
    asyncpg.exceptions.LockNotAvailableError,
)


class Patience:
    """Backs off with full jitter; a success starts it afresh."""

    passing = PASSING

    def __init__(self, first: float = 0.1, most: float = 5.0) -> None:
        self._first = self._next = first
        self._most = most

    def reset(self) -> None:
        self._next = self._first

    async def wait(self) -> None:
        await asyncio.sleep(random.uniform(0.1, 1) * self._next)
        self._next = min(self._next * 2, self._most)
