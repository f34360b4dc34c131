"""What is left idle: our own transactions are ended, those of tasks are theirs."""

from fairlane.core.connect import connected, pool


async def test_a_transaction_of_ours_that_is_left_idle_is_ended(database: str) -> None:
    async with connected(database) as connection:
        shown = await connection.fetchval("show idle_in_transaction_session_timeout")
    assert shown == "10s"


async def test_a_tasks_transaction_may_be_idle_for_as_long_as_it_likes(database: str) -> None:
    connections = await pool(database, for_others=True)
    async with connections.acquire() as connection:
        assert await connection.fetchval("show idle_in_transaction_session_timeout") == "0"
    await connections.close()
