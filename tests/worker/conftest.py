"""A fleet of real workers for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.workers import Fleet, fleet_of


@pytest.fixture
def fleet(database: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(database, tmp_path) as fleet:
        yield fleet
