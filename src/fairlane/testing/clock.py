"""Clocks that a test stops and moves: one for jobs without a server, one inside a test database."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from fairlane.errors import FairlaneError
from fairlane.testing.session import Session

# The product asks fairlane.clock() for the time; in a test database it can be stopped and moved.
MOVABLE_CLOCK = """
create schema fairlane_test;
grant usage on schema fairlane_test to public;

create table fairlane_test.clock (
  now_offset interval not null,
  frozen_at  timestamptz
);
grant select on fairlane_test.clock to public;
insert into fairlane_test.clock values (interval '0', null);

create or replace function fairlane.clock() returns timestamptz
language sql stable
as 'select coalesce(frozen_at, clock_timestamp()) + now_offset from fairlane_test.clock';
"""


class NotATestDatabase(FairlaneError):
    """The clock of a database that was not made for tests cannot be moved."""


class Clock(ABC):
    """Runs like any other until it is told otherwise."""

    @abstractmethod
    def now(self) -> datetime: ...

    @abstractmethod
    def freeze(self) -> datetime:
        """Stop the clock where it is; `advance` still moves it."""

    @abstractmethod
    def thaw(self) -> datetime:
        """Let the clock run on from where it stands."""

    def advance(
        self,
        by: timedelta = timedelta(0),
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> datetime:
        """Let time pass, and say what time it is then."""
        self._move(by + timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days))
        return self.now()

    @abstractmethod
    def _move(self, by: timedelta) -> None: ...


class InlineClock(Clock):
    """The time as jobs without a server see it."""

    def __init__(self) -> None:
        self._offset = timedelta(0)
        self._frozen_at: datetime | None = None

    def now(self) -> datetime:
        return (self._frozen_at or datetime.now(UTC)) + self._offset

    def freeze(self) -> datetime:
        self._frozen_at = self._frozen_at or datetime.now(UTC)
        return self.now()

    def thaw(self) -> datetime:
        if self._frozen_at is not None:
            self._offset += self._frozen_at - datetime.now(UTC)
            self._frozen_at = None
        return self.now()

    def _move(self, by: timedelta) -> None:
        self._offset += by


class DatabaseClock(Clock):
    """What `fairlane.clock()` says in one test database, to every session in it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        if session.ask("select to_regclass('fairlane_test.clock') is null"):
            name = session.ask("select current_database()::text")
            raise NotATestDatabase(
                f'nobody can move the clock of database "{name}"; only those that '
                "testing.fresh_database makes have one to move"
            )

    @classmethod
    @contextmanager
    def of(cls, url: str) -> Iterator["DatabaseClock"]:
        with Session.on(url) as session:
            yield cls(session)

    def now(self) -> datetime:
        found: datetime = self._session.ask("select fairlane.clock()")
        return found

    def freeze(self) -> datetime:
        self._session.ask(
            "update fairlane_test.clock set frozen_at = coalesce(frozen_at, clock_timestamp())"
        )
        return self.now()

    def thaw(self) -> datetime:
        self._session.ask(
            "update fairlane_test.clock set frozen_at = null, "
            "now_offset = now_offset + coalesce(frozen_at - clock_timestamp(), interval '0')"
        )
        return self.now()

    def _move(self, by: timedelta) -> None:
        self._session.ask("update fairlane_test.clock set now_offset = now_offset + $1", by)
