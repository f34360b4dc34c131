"""An acknowledgement that is lost on its way: the job lands once all the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from fairlane import Fairlane
from fairlane.client import aio
from fairlane.client.aio import OutcomeUnknown
from fairlane.client.wire import Batch
from fairlane.errors import DatabaseUnavailable, TenantNotFound
from support.pgbouncer import pgbouncer
from support.proxy import Cut, Proxy, proxy_before
from support.shop import send_of, shop

Db = psycopg.Connection[tuple[Any, ...]]

pytestmark = pytest.mark.fault


@pytest.fixture
def proxy(database: str, db: Db) -> Iterator[Proxy]:
    with proxy_before(database) as proxy:
        yield proxy


@pytest.fixture
def app(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fairlane]:
    monkeypatch.setattr(aio, "FIRST_PAUSE", 0.001)
    found = shop(proxy.url)
    yield found
    found.close_sync()


def numbers(db: Db) -> list[Any]:
    rows = db.execute("select (payload ->> 'number')::int from fairlane.jobs order by id")
    return [row[0] for row in rows.fetchall()]


@pytest.mark.parametrize("when", [Cut.BEFORE_IT_ARRIVES, Cut.AFTER_IT_IS_DONE])
def test_a_lost_connection_is_made_good_by_sending_the_same_job_again(
    app: Fairlane, db: Db, proxy: Proxy, when: Cut
) -> None:
    proxy.cut(when)

    job = send_of(app).enqueue_sync(tenant="acme", number=1)

    assert proxy.done == [when]
    assert not job.deduplicated
    assert db.execute("select id from fairlane.jobs").fetchall() == [(job.id,)]


def test_behind_a_pooler_it_is_made_good_as_well(
    database: str, db: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There every call is a transaction, and its end finds the connection gone: the pool had taken
    it back by then. To end it once more was an error of asyncpg's, which the caller got in place of
    the job, whenever a PgBouncer was restarted."""
    monkeypatch.setattr(aio, "FIRST_PAUSE", 0.001)
    with pgbouncer(database, tmp_path) as pooled, proxy_before(pooled) as proxy:
        app = shop(proxy.url)
        try:
            app.register_sync()
            proxy.cut(Cut.BEFORE_IT_ARRIVES, Cut.BEFORE_IT_ARRIVES)
            send_of(app).enqueue_sync(tenant="acme", number=1)
        finally:
            app.close_sync()

    assert proxy.done == [Cut.BEFORE_IT_ARRIVES] * 2
    assert numbers(db) == [1]


async def test_it_may_happen_again_and_again(app: Fairlane, db: Db, proxy: Proxy) -> None:
    cuts = [Cut.AFTER_IT_IS_DONE, Cut.BEFORE_IT_ARRIVES, Cut.AFTER_IT_IS_DONE]
    proxy.cut(*cuts)

    async with app:
        await send_of(app).enqueue(tenant="acme", number=1)

    assert proxy.done == cuts
    assert numbers(db) == [1]


async def test_many_land_once_each(app: Fairlane, db: Db, proxy: Proxy) -> None:
    proxy.cut(Cut.AFTER_IT_IS_DONE)
    send = send_of(app)

    async with app:
        jobs = await app.enqueue_many([send.request(tenant="acme", number=n) for n in range(300)])

    assert proxy.done == [Cut.AFTER_IT_IS_DONE]
    assert numbers(db) == list(range(300))
    rows = db.execute("select id from fairlane.jobs order by id").fetchall()
    assert [job.id for job in jobs] == [row[0] for row in rows]


def test_at_the_end_of_patience_the_error_tells_the_id_to_send_again(
    app: Fairlane, db: Db, proxy: Proxy
) -> None:
    send = send_of(app)
    proxy.cut(*[Cut.AFTER_IT_IS_DONE] * aio.TRIES)

    with pytest.raises(OutcomeUnknown) as lost:
        send.enqueue_sync(tenant="acme", number=1)

    [job_id] = lost.value.ids
    assert str(job_id) in str(lost.value)
    assert len(proxy.done) == aio.TRIES
    again = send.enqueue_sync(tenant="acme", number=1, id=job_id)
    assert (again.id, again.deduplicated) == (job_id, False)
    assert numbers(db) == [1]


async def test_a_job_that_ran_before_it_was_sent_again_is_not_run_twice(
    database: str, db: Db
) -> None:
    """The first send arrived, its answer did not, and a worker was quicker than the second."""
    app = shop(database)
    request = send_of(app).request(tenant="acme", number=1)
    batch, worker = Batch([request]), uuid4()
    db.execute("select fairlane.register_worker(%s, 'w')", [worker])

    async with app:
        await app.register()
        await app.ask(batch.call())
        claimed = db.execute(
            "select job_id, attempt from fairlane.claim(%s, 'critical', 1)", [worker]
        )
        [(job_id, attempt)] = claimed.fetchall()
        db.execute("select fairlane.finish(%s, %s, %s)", [worker, [job_id], [attempt]])
        [again] = batch.answers(row[0] for row in await app.ask(batch.call(again=True)))

    assert (again.id, again.status.value, again.deduplicated) == (job_id, "succeeded", False)
    assert db.execute("select count(*) from fairlane.job").fetchone() == (0,)
    assert numbers(db) == [1]


def test_only_what_may_have_been_sent_is_looked_for() -> None:
    """Looking for an id in the history costs time, which a first send need not spend."""
    app = shop("postgresql://nowhere")
    send = send_of(app)
    ours, given = (
        send.request(tenant="acme", number=1),
        send.request(tenant="acme", number=2, id=uuid4()),
    )
    batch = Batch([ours, given])

    first, again = batch.call().args[0], batch.call(again=True).args[0]

    assert first.count('"resend":false') == 1
    assert first.index('"resend":false') < first.index(str(given.id))
    assert '"resend":false' not in again


def test_a_refusal_is_not_sent_again(app: Fairlane, db: Db, proxy: Proxy) -> None:
    app.register_sync()
    before = proxy.connections

    with pytest.raises(TenantNotFound):
        send_of(app).enqueue_sync(tenant="nobody", number=1)

    assert proxy.connections == before


def test_a_connection_that_died_in_the_pool_is_replaced(
    app: Fairlane, db: Db, proxy: Proxy
) -> None:
    send = send_of(app)
    send.enqueue_sync(tenant="acme", number=1)
    db.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where pid <> pg_backend_pid() and datname = current_database()"
    )

    send.enqueue_sync(tenant="acme", number=2)

    assert numbers(db) == [1, 2]


def test_a_look_at_a_job_is_taken_again_and_a_change_is_not(
    app: Fairlane, db: Db, proxy: Proxy
) -> None:
    job = send_of(app).enqueue_sync(tenant="acme", number=1)
    proxy.cut(Cut.ANY_ANSWER)
    assert app.get_sync(job.id).id == job.id

    proxy.cut(Cut.ANY_ANSWER)
    with pytest.raises(DatabaseUnavailable, match="look before you try again"):
        app.cancel_sync(job.id)
    assert app.get_sync(job.id).status == "canceled"
