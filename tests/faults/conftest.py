"""A folder, servers and a clock of a scene's own."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane.testing.home import temporary_home
from faults.seeds import make_seed
from support.postgres import Server
from support.programs import needed


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


@pytest.fixture(scope="session")
def wall_clock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What makes a process see another wall clock, once it is preloaded."""
    compiler = needed("cc", "gcc")
    made = tmp_path_factory.mktemp("clock") / "wall_clock.so"
    source = Path(__file__).with_name("wall_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source], check=True)
    return str(made)
