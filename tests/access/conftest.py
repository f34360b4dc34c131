"""A server's database, straight and through a pooler, with two tenants in it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from access.estate import Estate, an_estate
from fairlane.access.acting import Database
from support.core import Core
from support.pgbouncer import pgbouncer


@pytest.fixture
async def estate(core: Core) -> Estate:
    return await an_estate(core)


@pytest.fixture(params=["straight", "pooled"])
def server_url(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> Iterator[str]:
    if request.param == "straight":
        yield database
    else:
        with pgbouncer(database, tmp_path) as url:
            yield url


@pytest.fixture
async def server(server_url: str) -> AsyncIterator[Database]:
    found = await Database.open(server_url, most=4)
    yield found
    await found.close()


@pytest.fixture
async def straight(database: str) -> AsyncIterator[Database]:
    found = await Database.open(database, most=4)
    yield found
    await found.close()
