"""The databases of a benchmark go when it is over."""

import asyncpg
import pytest

from fairlane.bench.scratch import drop
from fairlane.core.connect import connected
from support.cluster import Cluster


async def test_a_scratch_database_goes_with_those_who_are_still_in_it(
    cluster: Cluster, empty_database: str
) -> None:
    left_behind = await asyncpg.connect(empty_database)
    name = await left_behind.fetchval("select current_database()")

    async with connected(cluster.url) as admin:
        await drop(admin, name)
        assert not await admin.fetchval(
            "select exists (select from pg_database where datname = $1)", name
        )

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await left_behind.fetchval("select 1")
