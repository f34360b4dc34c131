"""The core over one connection, and sessions that go step by step."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from support.core import Core
from support.sessions import Session, sessions


@pytest.fixture
def core(conn: "asyncpg.Connection[Any]") -> Core:
    """The core of `database`, over `conn`."""
    return Core(conn)


@pytest.fixture
async def three(database: str) -> AsyncIterator[list[Session]]:
    """Three sessions of `database`."""
    async with sessions(database, 3) as found:
        yield found
