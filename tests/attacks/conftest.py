"""Two tenants with an API before them, and whoever attacks it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api.world import World, world_of
from attacks.cast import TENANTS, Player, cast_of
from fairlane.api.limits import Limits
from support.core import Core

# A stream that would be let in is refused as one too many: it has no end to wait for.
NO_STREAMS = Limits(rate=0, streams=0)


HERE = Path(__file__).parent
LONG = "test_fuzz_long.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` has ten minutes; what is tried here goes with `make test-long`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What takes long to collect is collected where it is asked for."""
    if collection_path.name != LONG:
        return None
    wanted = "scene_long" in config.option.markexpr.replace("not scene_long", "")
    return None if wanted or any(LONG in each for each in config.args) else True


@pytest.fixture
async def core(conn: "asyncpg.Connection[Any]") -> Core:
    return Core(conn)


@pytest.fixture
async def world(database: str, core: Core) -> AsyncIterator[World]:
    for slug in TENANTS:
        await core.a_tenant(slug, max_running=10_000)
    await core.a_definition("a.task")
    async with world_of(database, core, NO_STREAMS) as found:
        found.worker = await found.caller("worker")
        yield found


@pytest.fixture
async def cast(world: World) -> dict[str, Player]:
    return await cast_of(world)
