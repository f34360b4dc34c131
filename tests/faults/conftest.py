"""A folder and servers of a scene's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane.testing.home import temporary_home
from faults.servers import Server, make_seed


@pytest.fixture(scope="session")
def seed() -> Iterator[Path]:
    with temporary_home() as home:
        yield make_seed(home)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the server's user can enter."""
    with temporary_home() as home:
        yield home


@pytest.fixture
def server(seed: Path, place: Path) -> Iterator[Server]:
    found = Server.copy_of(seed, place / "one")
    try:
        yield found.start()
    finally:
        found.stop()
