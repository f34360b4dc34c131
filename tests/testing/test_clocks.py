"""A clock runs, stops, moves and runs on, with a server or without."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from fairlane import testing
from fairlane.core import migrate
from fairlane.testing import Clock
from fairlane.testing.clock import DatabaseClock, InlineClock, NotATestDatabase

A_WHILE = timedelta(milliseconds=50)


@pytest.fixture(params=["inline", "in_database"])
def clock(request: pytest.FixtureRequest) -> Iterator[Clock]:
    if request.param == "inline":
        yield InlineClock()
    else:
        with testing.fresh_database() as db:
            yield db.clock


def test_it_runs_like_any_other_until_it_is_told_otherwise(clock: Clock) -> None:
    first = clock.now()
    assert abs(first - datetime.now(UTC)) < timedelta(seconds=10)
    while clock.now() == first:
        pass
    assert clock.advance(days=1) - first >= timedelta(days=1)


def test_a_clock_that_stands_moves_by_what_it_is_told_alone(clock: Clock) -> None:
    frozen = clock.freeze()
    assert clock.freeze() == clock.now() == frozen
    assert clock.advance(timedelta(days=1), hours=1, minutes=1, seconds=0.5) == frozen + timedelta(
        days=1, hours=1, minutes=1, seconds=0.5
    )
    assert clock.advance(seconds=-1) == clock.now()


def test_the_time_that_it_stood_is_not_made_up_for(clock: Clock) -> None:
    frozen = clock.freeze()
    end = time.monotonic() + A_WHILE.total_seconds()
    while time.monotonic() < end:
        assert clock.now() == frozen

    begin = time.monotonic()
    thawed = clock.thaw()
    took = timedelta(seconds=time.monotonic() - begin, milliseconds=1)

    assert timedelta(0) <= thawed - frozen <= took
    assert clock.thaw() >= thawed


def test_in_a_database_it_is_moved_for_every_session() -> None:
    with testing.fresh_database() as db, psycopg.connect(db.url) as conn:
        now = db.clock.freeze() + timedelta(hours=1)
        db.clock.advance(hours=1)

        assert conn.execute("select fairlane.clock()").fetchone() == (now,)


def test_no_clock_but_that_of_a_test_database_is_moved(empty_database: str) -> None:
    asyncio.run(migrate.migrate(empty_database))

    with (
        pytest.raises(NotATestDatabase, match="nobody can move the clock of database"),
        DatabaseClock.of(empty_database),
    ):
        pass
