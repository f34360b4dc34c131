"""A PostgreSQL for tests, and a fresh database on it for each of them."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncpg

from fairlane.config import postgres_url
from fairlane.core import migrate
from fairlane.core.connect import Connection, connected
from fairlane.errors import FairlaneError
from fairlane.testing.clock import MOVABLE_CLOCK
from fairlane.testing.session import Session, wait

VARIABLE = "FAIRLANE_TEST_DATABASE_URL"


class MayNotCreateDatabases(FairlaneError):
    """The role cannot make databases for tests."""


@dataclass(frozen=True)
class Server:
    """`url` as the product uses it, `admin` for one who may create and drop databases."""

    url: str
    admin: str
    owner: str

    @classmethod
    def embedded(cls, url: str) -> "Server":
        return cls(url, url.replace("fairlane@/fairlane", "postgres@/postgres", 1), "fairlane")

    @classmethod
    def given(cls, url: str) -> "Server":
        with Session.on(url) as session:
            return cls(url, url, session.ask("select current_user::text"))

    def named(self, database: str) -> str:
        parts = urlsplit(self.url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}/{database}{query}"

    @contextlib.contextmanager
    def fresh(self, template: str = "template1") -> Iterator[str]:
        """The URL of a database of one's own, a copy of the template."""
        name = f"fairlane_test_{secrets.token_hex(6)}"
        wait(self._create(name, template))
        try:
            yield self.named(name)
        finally:
            wait(self._drop(name))

    async def template(self) -> str:
        """The name of a migrated database that is only ever copied, made by who comes first."""
        name = f"fairlane_template_{self._fingerprint()}"
        async with connected(self.admin, name="fairlane test") as conn:
            # For economy: those who start together migrate one template, not one each.
            await conn.execute("select pg_advisory_lock(hashtext($1))", name)
            if not await conn.fetchval("select true from pg_database where datname = $1", name):
                await self._make_template(conn, name)
        return name

    async def _make_template(self, conn: Connection, name: str) -> None:
        unfinished = f"{name}_{secrets.token_hex(4)}"
        await self._create(unfinished, "template1")
        try:
            await migrate.migrate(self.named(unfinished))
            async with connected(self.named(unfinished)) as inside:
                await inside.execute(MOVABLE_CLOCK)
            await conn.execute(f'alter database "{unfinished}" with allow_connections false')
            await conn.execute(f'alter database "{unfinished}" rename to "{name}"')
        except BaseException as error:
            await self._drop(unfinished)
            # Somebody connected to another database of this server took no notice of our lock.
            if not isinstance(error, asyncpg.DuplicateDatabaseError):
                raise

    async def _create(self, name: str, template: str) -> None:
        owner = self.owner.replace('"', '""')
        async with connected(self.admin, name="fairlane test") as conn:
            # Twice as fast as the default, which came with 15.
            strategy = " strategy file_copy" if conn.get_server_version().major >= 15 else ""
            try:
                await conn.execute(
                    f'create database "{name}" template "{template}" owner "{owner}"{strategy}'
                )
            except asyncpg.InsufficientPrivilegeError as error:
                raise MayNotCreateDatabases(
                    f'role "{self.owner}" may not make databases for tests ({error}); '
                    f'allow it with: alter role "{self.owner}" createdb'
                ) from None

    async def _drop(self, name: str) -> None:
        async with connected(self.admin, name="fairlane test") as conn:
            await conn.execute(f'drop database if exists "{name}" with (force)')

    def _fingerprint(self) -> str:
        # Only who owns a template may copy it.
        digest = hashlib.sha256(f"{self.owner}\0{MOVABLE_CLOCK}".encode())
        for path in sorted(migrate.SQL.rglob("*.sql")):
            digest.update(str(path.relative_to(migrate.SQL)).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:12]


@contextlib.contextmanager
def running(url: str | None = None) -> Iterator[Server]:
    """The server at `url` or FAIRLANE_TEST_DATABASE_URL, or else one that lives for the block."""
    if given := url or os.environ.get(VARIABLE):
        yield Server.given(postgres_url("url" if url else VARIABLE, given))
        return
    # Needs POSIX, which one with a server does not.
    from fairlane.embedded import Embedded
    from fairlane.testing.home import temporary_home

    # A test says itself when to vacuum and analyze.
    with temporary_home() as home, Embedded(home, {"autovacuum": "off"}, durable=False) as found:
        yield Server.embedded(found)
