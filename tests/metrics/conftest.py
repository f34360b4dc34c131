"""An API with two tenants, its metrics, and real workers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from api.world import World, world_of
from metrics.scraping import Scrape
from support.core import Core
from support.workers import Fleet, fleet_of

Look = Callable[[], Awaitable[Scrape]]


@pytest.fixture
async def world(database: str, core: Core) -> AsyncIterator[World]:
    await core.a_tenant("acme", max_running=3)
    await core.a_tenant("other")
    await core.a_definition("a.task", max_attempts=2, retry_delays=[60])
    async with world_of(database, core) as found:
        yield found


@pytest.fixture
def look(world: World, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Scrape; each time anew."""
    monkeypatch.setattr("fairlane.metrics.cached.HOLDS", 0.0)

    async def scrape() -> Scrape:
        answer = await world.http.get("/metrics", headers={"Host": "localhost"})
        assert answer.status_code == 200, answer.text
        return Scrape.of(answer.text)

    return scrape


@pytest.fixture
def fleet(database: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(database, tmp_path) as fleet:
        yield fleet
