"""The server starts where row security binds it, and says what to do where it would not."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from fairlane import doctor
from fairlane.access.acting import Database
from fairlane.access.refusals import ServerRoleMissing
from fairlane.core import migrate
from fairlane.embedded import Embedded
from fairlane.testing.home import temporary_home

PLAIN = "plain"


class Installation:
    """A server of its own, where nobody has made the role yet, and an owner who may not."""

    def __init__(self, admin: asyncpg.Connection, address: str) -> None:
        self.admin = admin
        self._address = address

    def url(self, user: str, database: str = PLAIN) -> str:
        return self._address.replace("fairlane@/fairlane", f"{user}@/{database}", 1)


@pytest.fixture
async def installation() -> AsyncIterator[Installation]:
    with temporary_home() as home, Embedded(home, durable=False) as address:
        admin = await asyncpg.connect(address.replace("fairlane@/fairlane", "postgres@/postgres"))
        await admin.execute(f"create role {PLAIN} login")
        await admin.execute(f"create database {PLAIN} owner {PLAIN}")
        yield Installation(admin, address)
        await admin.close()


async def opens(url: str) -> bool:
    database = await Database.open(url)
    try:
        async with database.pool.acquire() as connection:
            role = await connection.fetchval("select current_user::text")
            return bool(role == "fairlane_server")
    finally:
        await database.close()


async def test_an_owner_who_may_not_make_the_role_is_told_how(installation: Installation) -> None:
    url = installation.url(PLAIN)
    with pytest.raises(ServerRoleMissing, match="run: fairlane migrate"):
        await Database.open(url)
    await migrate.migrate(url)
    with pytest.raises(ServerRoleMissing) as refused:
        await Database.open(url)
    sentence = str(refused.value)
    assert "\n" not in sentence
    # What the sentence says is what helps.
    statements = sentence.split("run: ")[1]
    assert statements == "create role fairlane_server nologin; grant fairlane_server to plain"
    await installation.admin.execute(statements)
    assert await opens(url)
    assert await migrate.pending(url) == []


async def test_the_role_is_there_and_the_user_may_not_use_it(installation: Installation) -> None:
    await installation.admin.execute("create role fairlane_server nologin")
    url = installation.url(PLAIN)
    await migrate.migrate(url)
    with pytest.raises(ServerRoleMissing, match='grant fairlane_server to "plain"'):
        await Database.open(url)
    await installation.admin.execute("grant fairlane_server to plain")
    assert await opens(url)


async def test_a_user_that_owns_nothing_serves(installation: Installation) -> None:
    """The best way to run it: what it logs in as can do no more than the role."""
    await installation.admin.execute("create role fairlane_server nologin")
    await migrate.migrate(installation.url(PLAIN))
    await installation.admin.execute("create role api login in role fairlane_server")
    assert await opens(installation.url("api"))
    connection = await asyncpg.connect(installation.url("api"))
    try:
        await migrate.check(connection)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("delete from fairlane.job")
    finally:
        await connection.close()


async def test_a_role_that_came_after_the_migration_needs_the_owner_once(
    installation: Installation,
) -> None:
    owner = installation.url(PLAIN)
    await migrate.migrate(owner)
    await installation.admin.execute("create role fairlane_server nologin")
    await installation.admin.execute("create role api login in role fairlane_server")
    with pytest.raises(ServerRoleMissing, match=r"select fairlane.grant_access\(\)"):
        await Database.open(installation.url("api"))
    connection = await asyncpg.connect(owner)
    assert await connection.fetchval("select fairlane.grant_access()") is None
    await connection.close()
    assert await opens(installation.url("api"))


@pytest.mark.parametrize("power", ["bypassrls", "superuser"])
async def test_a_role_that_row_security_does_not_bind_is_refused(
    installation: Installation, power: str
) -> None:
    await installation.admin.execute(f"create role fairlane_server nologin {power}")
    await installation.admin.execute("grant fairlane_server to plain")
    url = installation.url(PLAIN)
    await migrate.migrate(url)
    with pytest.raises(ServerRoleMissing, match="not bound by row security"):
        await Database.open(url)


async def test_a_superuser_may_migrate_and_serve(installation: Installation) -> None:
    url = installation.url("postgres")
    await migrate.migrate(url)
    assert await opens(url)


@pytest.mark.parametrize(("user", "verdict"), [("postgres", "warn"), ("fairlane", "ok")])
async def test_the_doctor_knows_whom_row_security_does_not_bind(
    installation: Installation, user: str, verdict: str
) -> None:
    checks = await doctor.examine(installation.url(user))
    (found,) = [each for each in checks if each.name == "row security"]
    assert found.verdict == verdict


async def test_two_databases_of_one_server_share_the_role(installation: Installation) -> None:
    await installation.admin.execute("create database second owner fairlane")
    for name in ("fairlane", "second"):
        url = installation.url("fairlane", name)
        await migrate.migrate(url)
        assert await opens(url)
