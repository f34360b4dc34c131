"""Fixtures for all: a server for the run, a database for each test, a clock that moves."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from support import cluster as clusters
from support.clock import Clock
from support.cluster import Cluster
from support.core import Core
from support.sessions import Session, sessions

SHARED = pytest.StashKey[Any]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Under xdist the controller runs one server for all its workers."""
    stash = node.config.stash
    if SHARED not in stash:
        running = clusters.running()
        stash[SHARED] = (running, running.__enter__())
    found = stash[SHARED][1]
    node.workerinput["cluster"] = (found.url, found.admin, found.owner)


def pytest_unconfigure(config: pytest.Config) -> None:
    if SHARED in config.stash:
        config.stash[SHARED][0].__exit__(None, None, None)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The PostgreSQL server of this run."""
    if shared := getattr(request.config, "workerinput", {}).get("cluster"):
        yield Cluster(*shared)
    else:
        with clusters.running() as running:
            yield running


@pytest.fixture(scope="session")
def template(cluster: Cluster) -> str:
    return asyncio.run(cluster.template())


@pytest.fixture
def database(cluster: Cluster, template: str) -> Iterator[str]:
    """The URL of a fresh, migrated database."""
    with cluster.fresh(template) as url:
        yield url


@pytest.fixture
def empty_database(cluster: Cluster) -> Iterator[str]:
    """The URL of a fresh database with nothing in it."""
    with cluster.fresh() as url:
        yield url


@pytest.fixture
async def conn(database: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection to `database`."""
    connection = await asyncpg.connect(database)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
def core(conn: "asyncpg.Connection[asyncpg.Record]") -> Core:
    """The verbs of `database`, as its owner."""
    return Core(conn)


@pytest.fixture
async def three(database: str) -> AsyncIterator[list[Session]]:
    """Three sessions of `database` that go step by step."""
    async with sessions(database, 3) as found:
        yield found


@pytest.fixture
def clock(database: str) -> Iterator[Clock]:
    """The time as `database` tells it."""
    with Clock.of(database) as clock:
        yield clock
