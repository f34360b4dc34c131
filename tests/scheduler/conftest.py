"""A tenant, a definition, and a scheduler that does one round at a time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.stage import Stage
from support.core import Core
from support.workers import Fleet, fleet_of


@pytest.fixture
async def stage(core: Core) -> Stage:
    await core.a_tenant("acme")
    await core.a_tenant("other")
    await core.a_definition("a.task")
    return Stage(core)


@pytest.fixture
def fleet(database: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(database, tmp_path) as found:
        yield found
