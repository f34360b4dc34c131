"""A database for one test: fresh, migrated, with a clock to move and a worker on call."""

import asyncio
import atexit
import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from fairlane.app import Fairlane
from fairlane.client.producer import Producer
from fairlane.core import calls
from fairlane.testing.clock import Clock, DatabaseClock
from fairlane.testing.drain import drain
from fairlane.testing.server import VARIABLE, Server, running
from fairlane.testing.session import Session, wait


class Database:
    """What `fresh_database` gives."""

    def __init__(self, url: str, session: Session) -> None:
        self.url = url
        self.clock: Clock = DatabaseClock(session)
        self._session = session

    def tenant(self, slug: str, *, plan: str = "pro", name: str = "", **limits: Any) -> str:
        """Create a tenant and answer its slug; `limits` as `fairlane tenants set` takes them."""
        self._session.send(calls.create_tenant(slug, plan, name, limits))
        return slug

    @contextlib.contextmanager
    def use(self, app: Fairlane) -> Iterator[Fairlane]:
        """Have the app speak to this database, whichever it was made for."""
        with self._serving(app):
            yield app

    async def drain(
        self, app: Fairlane, *, queues: Mapping[str, int] | None = None, within: float = 60
    ) -> None:
        """Work until nothing can run any more: a real worker, in this process.

        What is scheduled, paused or over its starts a minute stays where it is. `queues` gives the
        slots, as to a worker; `within` seconds it must be done.
        """
        with self._serving(app) as producer:
            try:
                await drain(self.url, app, queues, within)
            finally:
                await producer.pools.close()

    def drain_sync(
        self, app: Fairlane, *, queues: Mapping[str, int] | None = None, within: float = 60
    ) -> None:
        """The same, for a test without an event loop."""
        asyncio.run(self.drain(app, queues=queues, within=within))

    @contextlib.contextmanager
    def _serving(self, app: Fairlane) -> Iterator[Producer]:
        producer = Producer(lambda: self.url, app.tasks)
        try:
            with app._sending_through(producer):
                yield producer
        finally:
            producer.portal.close()


@contextlib.contextmanager
def fresh_database(url: str | None = None) -> Iterator[Database]:
    """A database of one's own, dropped after the block.

    It is made on the server at `url`, or at FAIRLANE_TEST_DATABASE_URL, or on a PostgreSQL that
    starts with the first of them and stops with this process.
    """
    server, template = _server(url)
    with server.fresh(template) as found, Session.on(found) as session:
        yield Database(found, session)


# Those that this process has met, each with its template.
_servers: dict[str | None, tuple[Server, str]] = {}


def _server(url: str | None) -> tuple[Server, str]:
    which = url or os.environ.get(VARIABLE) or None
    if which not in _servers:
        lifetime = contextlib.ExitStack()
        server = lifetime.enter_context(running(url))
        atexit.register(_unless_forked, os.getpid(), lifetime)
        _servers[which] = server, wait(server.template())
    return _servers[which]


def _unless_forked(owner: int, lifetime: contextlib.ExitStack) -> None:
    if os.getpid() == owner:
        lifetime.close()
