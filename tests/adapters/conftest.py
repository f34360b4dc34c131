"""A transaction of every driver, and an application to enqueue from."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlane import Fairlane, Task
from fairlane.config import Settings
from support.cluster import Cluster
from support.drivers import DRIVERS, Begin, Transaction

# As good as new, at a tenth of the price.
CLEAN = """
set lock_timeout = '10s';
delete from fairlane.job;
delete from fairlane.arrival;
delete from fairlane.definition;
delete from fairlane.tenant;
delete from invoice;
update fairlane_test.clock set now_offset = '0', frozen_at = null;
select fairlane.create_tenant('acme', 'pro');
"""


@pytest.fixture(scope="session")
def database(cluster: Cluster, template: str) -> Iterator[str]:
    """One database for all of these tests; `db` cleans it."""
    with cluster.fresh(template) as url:
        with psycopg.connect(url) as connection:
            connection.execute("create table invoice (number int primary key)")
        yield url


@pytest.fixture(scope="session")
def other_database(cluster: Cluster, template: str) -> Iterator[str]:
    with cluster.fresh(template) as url:
        yield url


@pytest.fixture
def db(database: str) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    """Another session, which sees what is committed; the tenant acme and a table of the
    application's own are there."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(CLEAN)
        yield connection


@pytest.fixture
def app(database: str) -> Iterator[Fairlane]:
    found = Fairlane(database)
    yield found
    found.close_sync()


@pytest.fixture
def homeless(tmp_path: Path) -> Iterator[Fairlane]:
    """An app that has no database but the one its connections lead to."""
    found = Fairlane(settings=Settings(home=tmp_path))
    yield found
    found.close_sync()


@pytest.fixture
def elsewhere(other_database: str) -> Iterator[Fairlane]:
    """An app whose own database is not the one its connections lead to."""
    found = Fairlane(other_database)
    yield found
    found.close_sync()


@pytest.fixture
def send(app: Fairlane) -> "Task[..., None]":
    @app.job("invoices.send")
    def send(number: int, note: str = "", lines: list[dict[str, Any]] | None = None) -> None:
        pass

    return send


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
def begin(request: pytest.FixtureRequest, database: str, db: object) -> Iterator[Begin]:
    """Begin a transaction with the driver."""
    with ExitStack() as stack:

        def begin(*, dressed: bool = False) -> Transaction:
            driver: type[Transaction] = request.param
            return driver(database, stack, dressed=dressed)

        yield begin
