"""Views show their reader's rows: by `security_invoker`, and by a guard where there is none yet."""

from uuid import uuid4

import asyncpg
import pytest

from access.estate import CANARIES, OPERATOR, TENANTS, WORKER, Estate
from fairlane.access.acting import Database
from fairlane.core import calls
from support.core import Core

VIEWS = (
    "jobs",
    "dead_letters",
    "attempts",
    "workers",
    "queues",
    "tenants",
    "lane_counts",
    "tokens",
    "triggers",
    "operations",
    "ended",
    "active_work",
    "slow_jobs",
    "error_rate",
    "throughput_by_tenant",
    "backlog_by_kind",
    "alerts",
)


async def test_every_view_that_may_be_read_reads_as_its_reader(core: Core) -> None:
    rows = await core.fetch(
        """
        select relname::text as name, reloptions
          from pg_class
         where relnamespace = 'fairlane'::regnamespace and relkind = 'v'
           and has_table_privilege('fairlane_server', oid, 'select')
        """
    )
    assert {row["name"] for row in rows} == set(VIEWS)
    as_owner = {
        row["name"] for row in rows if "security_invoker=true" not in (row["reloptions"] or [])
    }
    assert as_owner == {"workers"}, "this one asks by itself"


async def test_where_workers_run_and_by_which_token_is_for_operators(
    server: Database, estate: Estate, core: Core
) -> None:
    about = calls.register_worker(uuid4(), "w", {}, metadata={"subject": "token:AbC12345"})
    await core.send(about)
    for who in (estate.principal("acme"), WORKER):
        async with server.acting(who) as connection:
            assert await connection.fetch("select * from fairlane.workers") == []
        for column in ("metadata", "hostname", "pid"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with server.acting(who) as connection:
                    await connection.fetch(f"select {column} from fairlane.worker")
    async with server.acting(OPERATOR) as connection:
        seen = str(await connection.fetch("select * from fairlane.workers"))
    assert "token:AbC12345" in seen
    async with server.acting(estate.principal("acme")) as connection:
        names = await connection.fetch("select worker from fairlane.jobs where worker is not null")
    assert names, "each job says by name which one ran it"


@pytest.fixture
async def old(core: Core) -> None:
    """The views as they are on PostgreSQL 14."""
    for view in VIEWS:
        await core.conn.execute(f"alter view fairlane.{view} reset (security_invoker)")
        await core.fetch("select fairlane.guard_view($1, false)", view)


@pytest.mark.usefixtures("old")
async def test_a_guarded_view_shows_its_readers_rows(
    straight: Database, estate: Estate, core: Core
) -> None:
    for view in VIEWS:
        for tenant in TENANTS:
            (other,) = set(TENANTS) - {tenant}
            async with straight.acting(estate.principal(tenant)) as connection:
                text = str(await connection.fetch(f"select * from fairlane.{view}"))
            assert CANARIES[other] not in text, view
            assert str(estate.ids[other]) not in text, view
        async with straight.acting(WORKER) as connection:
            assert await connection.fetch(f"select * from fairlane.{view}") == [], view
        everything = f"select * from fairlane.{view}"
        async with straight.acting(OPERATOR) as connection:
            assert len(await connection.fetch(everything)) == len(await core.fetch(everything))
    async with straight.acting(estate.principal("acme")) as connection:
        for view in ("jobs", "dead_letters", "attempts", "tenants", "tokens"):
            assert await connection.fetch(f"select * from fairlane.{view}"), view


async def test_how_queues_stand_over_all_tenants_is_for_operators(
    server: Database, estate: Estate, core: Core
) -> None:
    await core.fetch("select fairlane.take_sample()")
    async with server.acting(OPERATOR) as connection:
        assert await connection.fetch("select queue from fairlane.sample")
    async with server.acting(estate.principal("acme")) as connection:
        assert await connection.fetch("select queue from fairlane.sample") == []
