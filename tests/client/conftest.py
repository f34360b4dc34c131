"""An application with a task, a tenant to enqueue for, and a look at what is there."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from fairlane import Fairlane
from support.shop import shop

Db = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def db(database: str) -> Iterator[Db]:
    """A session that sees what is committed; the tenant acme is there."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select fairlane.create_tenant('acme', 'pro')")
        yield connection


@pytest.fixture
def app(database: str, db: Db) -> Iterator[Fairlane]:
    found = shop(database)
    yield found
    found.close_sync()
