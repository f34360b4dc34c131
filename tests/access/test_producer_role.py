"""An application enqueues as a role of its own that may do that and little else."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from fairlane import Fairlane
from support.cluster import Cluster
from support.core import Core


@pytest.fixture
async def shop(
    core: Core, database: str, cluster: Cluster
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A connection as an application's own role, which is a producer and nothing else."""
    await core.a_tenant("acme")
    name = await core.one("select current_database()")
    connection = await asyncpg.connect(cluster.admin, database=name)
    role = f"shop_{uuid4().hex[:8]}"
    await connection.execute(f"create role {role} login in role fairlane_producer")
    await connection.execute(f"set session authorization {role}")
    yield connection
    await connection.execute("reset session authorization")
    await connection.execute(f"drop role {role}")
    await connection.close()


async def test_a_producer_enqueues_and_emits_by_sql(
    shop: "asyncpg.Connection[Any]", core: Core
) -> None:
    await core.a_definition("kind")
    job = await shop.fetchval("select id from fairlane.enqueue('acme', 'kind', '{\"n\": 1}')")
    assert await core.status(job) == "queued"
    assert await shop.fetchval("select id from fairlane.emit('acme', 'folder.updated')")


async def test_a_producer_uses_the_library_in_its_own_transaction(
    shop: "asyncpg.Connection[Any]", core: Core
) -> None:
    app = Fairlane("postgresql://nobody@127.0.0.1:1/none")

    @app.job("mails.send")
    async def send_mail(to: str) -> None: ...

    async with shop.transaction():
        sent = await app.enqueue(
            "mails.send",
            {"to": "ada"},
            tenant="acme",
            scheduled_for=timedelta(hours=1),
            connection=shop,
        )
    assert await core.status(sent.id) == "scheduled"
    await app.close()


async def test_a_producer_may_do_nothing_else(shop: "asyncpg.Connection[Any]", core: Core) -> None:
    job = await core.enqueue("acme", await core.a_definition("kind"))
    for statement in (
        "select * from fairlane.job",
        "select * from fairlane.jobs",
        "select * from fairlane.tenant",
        f"select fairlane.cancel('{job}')",
        "select fairlane.pause_tenant('acme')",
        "insert into fairlane.definition (key) values ('x')",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await shop.execute(statement)
