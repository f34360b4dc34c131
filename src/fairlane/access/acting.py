"""The server's way to the database: as a role that row security binds, for one principal at a time.

database = await Database.open(url)
async with database.acting(who) as connection:      # one transaction: `who`'s rows, no others
    rows = await send(connection, calls.cancel(job_id, reason, who.tenant))
rows = await database.call(who, calls.claim(...))   # one verb, one round trip
rows = await database.enqueue([(who, item)])
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from fairlane.access.places import Places
from fairlane.access.principal import Principal
from fairlane.access.refusals import Busy, TookTooLong
from fairlane.access.server_role import ROLE, make_ready
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import (
    UNREACHABLE,
    Connection,
    Record,
    ThroughPooler,
    confirm,
    is_pooled,
    send,
    unavailable,
)
from fairlane.core.wary import OF_OUR_OWN, SETTINGS, Wary

# All in one statement. Each holds until the end of the transaction and no longer: behind a pooler
# the next transaction on this connection is somebody else's.
ACT = """
select set_config('role', $1, true), set_config('fairlane.tenant_id', $2, true),
       set_config('fairlane.actor', $3, true), set_config('statement_timeout', $4, true),
       set_config('lock_timeout', $5, true)
"""
AS_SERVER = """
select set_config('role', $1, true), set_config('statement_timeout', $2, true),
       set_config('lock_timeout', $3, true)
"""

# Seconds. What cannot be had in that time is refused, and its connection is free for others.
CONNECTION = 3.0  # to wait for one of the pool's
LOCK = 3.0  # to wait for what another transaction holds
STATEMENT = 10.0
ANSWER = STATEMENT + 2  # until a database that says nothing at all is taken for lost


class AsServer(ThroughPooler):
    """Behind a pooler a role cannot be had for longer than a transaction."""

    async def fetch(self, query: str, *args: Any, **options: Any) -> list[Any]:
        if self.is_in_transaction():
            rows: list[Any] = await super().fetch(query, *args, **options)
        else:
            async with self.transaction():
                await super().fetch(AS_SERVER, ROLE, _ms(STATEMENT), _ms(LOCK))
                rows = await super().fetch(query, *args, **options)
        return rows


class Database:
    """A pool of connections that can do only what the role `fairlane_server` may."""

    def __init__(self, pool: asyncpg.Pool, most: int = 10) -> None:
        self.pool = pool
        # However much one tenant has under way, most connections are the others'.
        self._places = Places(max(2, most * 2 // 5), CONNECTION)

    @classmethod
    async def open(cls, url: str, *, most: int = 10, name: str = "fairlane server") -> "Database":
        """Connect; ServerRoleMissing where there is no role to act as, and how to make it."""
        try:
            pooled = await is_pooled(url)
            await make_ready(url)
            settings = {"application_name": name}
            options: dict[str, Any] = {"server_settings": settings, "command_timeout": ANSWER}
            if pooled:
                # A pooler takes no such parameters, and a statement prepared stays behind.
                options |= {"connection_class": AsServer, "statement_cache_size": 0}
            else:
                options["connection_class"] = Wary
                settings |= {"role": ROLE, **SETTINGS, **OF_OUR_OWN}
                settings |= {"statement_timeout": _ms(STATEMENT), "lock_timeout": _ms(LOCK)}
            pool = await asyncpg.create_pool(
                url, min_size=0, max_size=most, timeout=10, reset=_leave_nothing_open, **options
            )
        except UNREACHABLE as error:
            raise unavailable(error) from None
        return cls(pool, most)

    async def close(self) -> None:
        await self.pool.close()

    @asynccontextmanager
    async def acting(
        self, who: Principal, *, within: float | None = None
    ) -> AsyncIterator[Connection]:
        """One transaction that sees `who`'s tenant's rows and no others.

        An operator who acts for no tenant sees all; a worker sees none (its verbs are functions).
        A read may run for `within` seconds, then TookTooLong; what changes something waits for
        locks for LOCK seconds. Busy when no connection is free. Commits at the end of the block,
        rolls back on an error. Send calls with `fairlane.core.connect.send`.
        """
        limits = (_ms(STATEMENT), _ms(LOCK)) if within is None else (_ms(within), "0")
        try:
            async with self._places.of(who.tenant_id), self.connection() as connection:
                async with connection.transaction():
                    try:
                        await connection.fetch(ACT, ROLE, who.scope, who.subject, *limits)
                        yield connection
                    except TimeoutError:
                        connection.terminate()  # it would not hear of a rollback either
                        raise
                await confirm(connection)
        except asyncpg.QueryCanceledError:
            raise TookTooLong(
                f"the answer took more than {within:g} seconds; narrow the filter and ask again"
                if within is not None
                else "the database ended the statement; ask again"
            ) from None

    async def call(self, who: Principal, call: Call) -> list[Record]:
        """Send one verb that carries `who`'s tenant among its arguments: one round trip.

        No tenant is set, so a table that is read this way shows no rows: only verbs answer. A call
        that lacks the tenant of a principal who has one is not sent. An audited verb goes through
        `acting`, which names the actor.
        """
        if who.tenant is not None and who.tenant not in call.args:
            raise ValueError(f"the call does not carry the tenant it is for: {call.sql}")
        return await self.send(call)

    async def enqueue(self, asked: Sequence[tuple[Principal, Mapping[str, Any]]]) -> list[Record]:
        """Enqueue jobs of any number of principals, all or none, in one round trip.

        Items have the names of fairlane.enqueue's parameters. `tenant` and `created_by` are the
        principal's, whatever an item says. Answers in the order of the items.
        """
        return await self.send(calls.enqueue([owned(who, item) for who, item in asked]))

    async def send(self, call: Call) -> list[Record]:
        """Send one verb as the server itself, for what is asked before it is known who asks."""
        async with self.connection() as connection:
            return await send(connection, call)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """One of the pool's; Busy when none is free in time, DatabaseUnavailable when the database
        takes a question and does not answer."""
        try:
            connection = await self.pool.acquire(timeout=CONNECTION)
        except TimeoutError:
            raise Busy("the server is busy, or the database does not answer; try again") from None
        try:
            yield connection
        except TimeoutError as error:
            connection.terminate()
            raise unavailable(error) from None
        finally:
            await self.pool.release(connection)


def owned(who: Principal, item: Mapping[str, Any]) -> dict[str, Any]:
    """The item as `who`'s tenant's; what it says of tenant and maker itself counts for nothing."""
    if who.tenant is None:
        raise ValueError(f"{who.subject} acts for no tenant and cannot enqueue")
    return {**item, "tenant": who.tenant, "created_by": who.subject}


def _ms(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))


async def _leave_nothing_open(connection: Any) -> None:
    """A request may be cancelled anywhere. What is not at rest is not given to the next."""
    if connection.is_in_transaction():
        connection.terminate()
