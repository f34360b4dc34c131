"""The demo's stream: believable, bounded, and the same again after a restart."""

import asyncpg
import pytest

from fairlane import demo
from fairlane.demo import FLOOD, FLOOD_BELOW, STREAMS, TENANTS, Producer, Stream

Conn = asyncpg.Connection


async def test_a_restart_finds_what_is_there_and_leaves_it(conn: Conn) -> None:
    await Producer(conn).prepare()
    await conn.execute("select fairlane.set_tenant('acme', '{\"plan\": \"free\"}')")

    await Producer(conn).prepare()

    assert await conn.fetchval("select plan from fairlane.tenant where slug = 'acme'") == "free"
    assert await conn.fetchval("select count(*) from fairlane.tenant") == len(TENANTS)
    kinds = {row[0] for row in await conn.fetch("select key from fairlane.definition")}
    assert kinds == {stream.key for stream in STREAMS}


async def test_the_stream_never_outgrows_its_bounds(conn: Conn) -> None:
    producer = Producer(conn)
    await producer.prepare()

    # Ten minutes with nobody to do the work.
    for _ in range(600):
        await producer.tick()

    live = await conn.fetch("select tenant, queue, count(*) from fairlane.jobs group by 1, 2")
    assert {row["tenant"] for row in live} == set(TENANTS)
    for tenant, queue, jobs in live:
        most = max(stream.most for stream in STREAMS if stream.queue == queue)
        flood = FLOOD + FLOOD_BELOW if (tenant, queue) == ("megacorp", "default") else 0
        assert jobs <= most + flood + 10, f"{tenant} in {queue}"


async def test_what_always_fails_stops_when_enough_wait_for_a_person(
    conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "DEAD_LETTERS_ENOUGH", 0)
    producer = Producer(conn)
    await producer.prepare()

    for _ in range(100):
        await producer.tick()

    kinds = {row[0] for row in await conn.fetch("select definition_key from fairlane.jobs")}
    assert "email.send" in kinds
    assert "ledger.import" not in kinds


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.key)
def test_every_kind_goes_to_its_queue_with_an_input_that_it_takes(stream: Stream) -> None:
    request = demo.request("acme", stream.key)
    task = demo.app.tasks[stream.key, "1"]

    assert task.options.queue == stream.queue
    assert task.arguments(request.payload)
