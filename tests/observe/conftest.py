"""A fleet of real workers, and a collector that takes their spans."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from observe.collector import Collector, collector
from support.workers import Fleet, fleet_of


@pytest.fixture
def fleet(database: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(database, tmp_path) as fleet:
        yield fleet


@pytest.fixture
def spans() -> Iterator[Collector]:
    with collector() as found:
        yield found
