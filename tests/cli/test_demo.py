"""The demo's stream: believable, bounded, and the same again after a restart."""

import asyncpg
import pytest

from fairlane.demo import app, stream
from fairlane.demo.stream import FLOOD, FLOOD_BELOW, STREAMS, TENANTS, Producer, Stream, request

Conn = asyncpg.Connection


async def test_a_restart_finds_what_is_there_and_leaves_it(conn: Conn) -> None:
    await Producer(conn).prepare()
    await conn.execute("select fairlane.set_tenant('acme', '{\"plan\": \"free\"}')")

    await Producer(conn).prepare()

    assert await conn.fetchval("select plan from fairlane.tenant where slug = 'acme'") == "free"
    assert await conn.fetchval("select count(*) from fairlane.tenant") == len(TENANTS)
    kinds = {row[0] for row in await conn.fetch("select key from fairlane.definition")}
    assert kinds == {each.key for each in STREAMS} | {"folders.sync", "digest.build"}
    triggers = await conn.fetch("select label from fairlane.trigger where chore is null")
    assert len(triggers) == 3
    assert await conn.fetchval("select count(*) from fairlane.worker") == 1
    hours = await conn.fetchval("select count(distinct hour) from fairlane.rollup")
    assert hours > 300, "a fortnight is behind it"


async def test_the_stream_never_outgrows_its_bounds(conn: Conn) -> None:
    producer = Producer(conn)
    await producer.prepare()

    # Ten minutes with nobody to do the work.
    for _ in range(600):
        await producer.tick()

    live = await conn.fetch("select tenant, queue, count(*) from fairlane.jobs group by 1, 2")
    assert {row["tenant"] for row in live} == set(TENANTS)
    for tenant, queue, jobs in live:
        most = max(each.most for each in STREAMS if each.queue == queue)
        flood = FLOOD + FLOOD_BELOW if (tenant, queue) == ("megacorp", "default") else 0
        assert jobs <= most + flood + 10, f"{tenant} in {queue}"


async def test_what_always_fails_stops_when_enough_wait_for_a_person(
    conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "DEAD_LETTERS_ENOUGH", 0)
    producer = Producer(conn)
    await producer.prepare()

    for _ in range(100):
        await producer.tick()

    kinds = {row[0] for row in await conn.fetch("select definition_key from fairlane.jobs")}
    assert "email.send" in kinds
    assert "ledger.import" not in kinds


@pytest.mark.parametrize("kind", STREAMS, ids=lambda kind: kind.key)
def test_every_kind_goes_to_its_queue_with_an_input_that_it_takes(kind: Stream) -> None:
    made = request("acme", kind.key)
    if (task := app.tasks.get((kind.key, "1"))) is None:
        assert (made.definition_key, kind.queue) == ("disk.report", "default")
        return

    assert task.options.queue == kind.queue
    assert task.arguments(made.payload)


async def test_events_come_and_a_trigger_takes_them(conn: Conn) -> None:
    producer = Producer(conn)
    await producer.prepare()
    for _ in range(60):
        await producer.tick()

    names = {row[0] for row in await conn.fetch("select name from fairlane.event")}
    assert names == {stream.EVENT}
