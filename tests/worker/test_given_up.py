"""A statement that is given up: its connection is closed, not its wait cancelled on the server."""

import asyncio

import pytest

from fairlane.core.connect import connected, pool

SLEEP = "select pg_sleep(60)"
SLEEPS = "select count(*) from pg_stat_activity where query = $1 and state = 'active'"


async def test_what_is_given_up_runs_on_and_its_place_in_the_pool_is_free(database: str) -> None:
    """A cancel would end the wait of a commit for its standby: the job would be told as there, and
    be gone after a failover."""
    connections = await pool(database, most=1, name="giving up")
    async with connected(database) as other:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3), connections.acquire() as connection:
                    await connection.fetch(SLEEP)
            async with asyncio.timeout(5), connections.acquire() as connection:
                assert await connection.fetchval("select 1") == 1
        assert await other.fetchval(SLEEPS, SLEEP) == 3
        await other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where query = $1", SLEEP
        )
    connections.terminate()


async def test_a_transaction_of_ours_that_is_left_idle_is_ended(database: str) -> None:
    async with connected(database) as connection:
        shown = await connection.fetchval("show idle_in_transaction_session_timeout")
    assert shown == "10s"


async def test_a_tasks_transaction_may_be_idle_for_as_long_as_it_likes(database: str) -> None:
    connections = await pool(database, for_others=True)
    async with connections.acquire() as connection:
        assert await connection.fetchval("show idle_in_transaction_session_timeout") == "0"
    await connections.close()
