"""The proxy does to connections what it says, and nothing else: seen with real drivers."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import asyncpg
import psycopg
import pytest
from psycopg import sql

from faults.proxy import Proxy, is_write
from support.cluster import Cluster
from support.workers import until

pytestmark = pytest.mark.fault

Db = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def table(empty_database: str) -> Iterator[Db]:
    """A connection past the proxy, to a database with the table `seen`."""
    with psycopg.connect(empty_database, autocommit=True) as db:
        db.execute("create table seen (n int primary key)")
        yield db


@pytest.fixture
def proxy(empty_database: str) -> Iterator[Proxy]:
    query = parse_qs(urlsplit(empty_database).query)
    with Proxy(query["host"][0], int(query["port"][0])) as proxy:
        yield proxy


@pytest.fixture
def through(proxy: Proxy, table: Db, empty_database: str) -> Iterator[Db]:
    """A connection through the proxy. It is closed, not left by `with`, which would commit: where a
    reset comes before the answer's end, libpq still takes the statement for under way."""
    url = proxy.url(empty_database)
    with closing(psycopg.connect(url, autocommit=True, connect_timeout=5)) as db:
        yield db


def rows(table: Db) -> list[object]:
    return [row[0] for row in table.execute("select n from seen order by n").fetchall()]


def test_whatever_passes_comes_through_unchanged(proxy: Proxy, through: Db, table: Db) -> None:
    """Simple and extended protocol, a pipeline, a copy, an error, and much at a time."""
    assert through.execute("select 1; select 2").fetchone() == (1,)
    assert through.execute("select %s::text", ["x" * 3_000_000]).fetchone() == ("x" * 3_000_000,)
    with through.pipeline():
        for n in range(20):
            through.execute("insert into seen values (%s)", [n])
    with through.cursor().copy("copy seen from stdin") as copy:
        for n in range(20, 1000):
            copy.write_row([n])
    with pytest.raises(psycopg.errors.UniqueViolation):
        through.execute("insert into seen values (%s)", [1])
    assert len(rows(table)) == 1000
    assert proxy.fired == {"connections": 1}


async def test_asyncpg_passes_as_well_and_hears_notifications(
    proxy: Proxy, table: Db, empty_database: str
) -> None:
    """Its listener may wait for long; a word for it goes through at once, whatever is delayed."""
    conn = await asyncpg.connect(proxy.url(empty_database))
    heard = asyncio.Event()
    await conn.add_listener("bell", lambda *_: heard.set())
    await conn.executemany("insert into seen values ($1)", [(n,) for n in range(50)])
    assert await conn.fetchval("select count(*) from seen") == 50
    proxy.delay(5)
    table.execute("notify bell")
    async with asyncio.timeout(3):
        await heard.wait()
    conn.terminate()


def test_a_request_for_tls_is_refused_and_a_tcp_target_serves(
    proxy: Proxy, table: Db, empty_database: str
) -> None:
    with Proxy("127.0.0.1", proxy.port) as second:
        url = second.url(empty_database).replace("sslmode=disable", "sslmode=prefer")
        with psycopg.connect(url) as db:
            assert db.execute("select 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="SSL"):
            psycopg.connect(url.replace("prefer", "require"))
        assert second.fired["tls_refused"] == 2


def test_a_cancel_reaches_the_server(proxy: Proxy, through: Db, table: Db) -> None:
    def cancel() -> None:
        until(lambda: is_active(table), "it runs")
        through.cancel_safe()  # cancel() would wait with the interpreter's lock held

    canceling = threading.Thread(target=cancel)
    canceling.start()
    with pytest.raises(psycopg.errors.QueryCanceled):
        through.execute("select pg_sleep(20)")
    canceling.join()
    assert proxy.fired["cancels"] == 1


def is_active(table: Db) -> bool:
    return bool(
        table.execute(
            "select from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()"
            " and datname = current_database()"
        ).fetchall()
    )


def test_answers_are_delayed_all_or_the_chosen(proxy: Proxy, through: Db) -> None:
    def seconds(statement: str) -> float:
        begun = time.monotonic()
        through.execute(statement)
        return time.monotonic() - begun

    proxy.delay(0.4, only="SEEN")
    assert seconds("select 1") < 0.35
    assert seconds("insert into seen values (1)") >= 0.4
    proxy.delay(0.4)
    assert seconds("select 1") >= 0.4
    proxy.delay(0)
    assert seconds("insert into seen values (2)") < 0.35
    assert proxy.fired["delayed"] == 2


def test_a_prepared_statement_is_known_by_its_text(proxy: Proxy, through: Db) -> None:
    for n in range(8):  # psycopg prepares what it has seen five times
        through.execute("insert into seen values (%s)", [n])
    proxy.delay(0.4, only="seen")
    begun = time.monotonic()
    through.execute("insert into seen values (%s)", [8])
    assert time.monotonic() - begun >= 0.4


def test_a_cut_resets_all_and_the_next_are_welcome(
    proxy: Proxy, through: Db, table: Db, empty_database: str
) -> None:
    other = psycopg.connect(proxy.url(empty_database), autocommit=True)
    assert proxy.cut() == 2
    for each in (through, other):
        with pytest.raises(psycopg.OperationalError):
            each.execute("select 1")
    until(lambda: proxy.connections == 0, "both are gone")
    with psycopg.connect(proxy.url(empty_database)) as again:
        assert again.execute("select 1").fetchone() == (1,)
    assert proxy.fired["cut"] == 2
    # The server's ends went too.
    until(lambda: backends(table) == 1, "only our own is left")


def backends(table: Db) -> int:
    row = table.execute(
        "select count(*)::int from pg_stat_activity where datname = current_database()"
    ).fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]


def test_in_the_dark_nobody_hears_and_nobody_is_told(
    proxy: Proxy, through: Db, table: Db, empty_database: str
) -> None:
    through.execute("begin")
    through.execute("insert into seen values (1)")
    idle = psycopg.connect(proxy.url(empty_database), autocommit=True)
    proxy.blackhole()

    asking = threading.Thread(target=lambda: asked.append(error_of(through, "commit")))
    asked: list[str | None] = []
    asking.start()
    with pytest.raises(psycopg.OperationalError, match="timeout"):
        psycopg.connect(proxy.url(empty_database), connect_timeout=2)
    # The client still waits, and the server still holds its transaction open.
    assert asking.is_alive()
    assert backends(table) == 3
    assert rows(table) == []

    assert proxy.heal() >= 1
    asking.join(10)
    assert asked != [None]
    until(lambda: backends(table) == 2, "the server has been told")
    assert rows(table) == []
    # Who asked nothing has lost nothing.
    assert idle.execute("select 1").fetchone() == (1,)
    assert proxy.fired["swallowed"] >= 2
    idle.close()


def test_a_client_that_dies_in_the_dark_stays_alive_to_the_server(
    proxy: Proxy, through: Db, table: Db
) -> None:
    """What a machine that lost its power leaves behind: a transaction that holds its lock."""
    through.execute("begin")
    through.execute("insert into seen values (1)")
    proxy.blackhole()
    through.close()
    with pytest.raises(psycopg.errors.LockNotAvailable):
        table.execute("set lock_timeout = '500ms'; insert into seen values (1)")
    proxy.heal()
    table.execute("set lock_timeout = '10s'; insert into seen values (1)")


def error_of(db: Db, statement: str) -> str | None:
    try:
        db.execute(sql.SQL(statement))
    except psycopg.OperationalError as error:
        return str(error)
    return None


def test_a_lost_acknowledgement_is_of_a_write_that_is_there(
    proxy: Proxy, through: Db, table: Db, empty_database: str
) -> None:
    proxy.lose_acks(2)
    assert through.execute("select count(*) from seen").fetchone() == (0,)
    with pytest.raises(psycopg.OperationalError):
        through.execute("insert into seen values (%s)", [1])
    assert rows(table) == [1]

    db = psycopg.connect(proxy.url(empty_database))
    db.execute("insert into seen values (2)")  # answered: nothing is committed yet
    assert rows(table) == [1]
    with pytest.raises(psycopg.OperationalError):
        db.commit()
    assert rows(table) == [1, 2]

    with psycopg.connect(proxy.url(empty_database)) as db:
        db.execute("insert into seen values (3)")
    assert rows(table) == [1, 2, 3]
    assert proxy.fired["lost_acks"] == 2
    assert "seen" in proxy.lost[0]
    assert proxy.lost[1].lower().endswith("commit")


def test_what_fails_or_is_rolled_back_loses_no_acknowledgement(
    proxy: Proxy, through: Db, table: Db
) -> None:
    table.execute("insert into seen values (1)")
    proxy.lose_acks(1)
    with pytest.raises(psycopg.errors.UniqueViolation):
        through.execute("insert into seen values (1)")
    with through.transaction(force_rollback=True):
        through.execute("insert into seen values (2)")
    with pytest.raises(psycopg.errors.UniqueViolation), through.transaction():
        through.execute("insert into seen values (1)")
    assert proxy.acks_to_lose == 1
    with pytest.raises(psycopg.OperationalError):
        through.execute("insert into seen values (3)")
    assert rows(table) == [1, 3]


async def test_asyncpg_loses_the_acknowledgement_of_the_chosen_alone(
    proxy: Proxy, table: Db, empty_database: str
) -> None:
    conn = await asyncpg.connect(proxy.url(empty_database))
    proxy.lose_acks(1, only="(77)")
    await conn.execute("insert into seen values ($1)", 1)
    with pytest.raises((OSError, asyncpg.PostgresConnectionError)):
        await conn.execute("insert into seen values (77)")
    assert rows(table) == [1, 77]
    conn.terminate()


def test_a_new_target_is_where_new_connections_go(
    proxy: Proxy, through: Db, table: Db, empty_database: str, cluster: Cluster
) -> None:
    assert through.execute("select 1").fetchone() == (1,)
    proxy.point_to("127.0.0.1", 1)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(proxy.url(empty_database))
    assert proxy.fired["refused"] == 1
    assert through.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("insert into t values (1)", True),
        ("with a as (delete from t returning n) insert into u select n from a", True),
        ("with a as materialized ( update t set n = 1 returning n) select * from a", True),
        ("select * from fairlane.enqueue_many($1::text::jsonb)", True),
        ("select fairlane.clock()", False),
        ("select * from fairlane.jobs where id = any ($1)", False),
        ("begin", False),
        ("select inserted, updated from t", False),
    ],
)
def test_a_write_is_known_by_its_text(text: str, writes: bool) -> None:
    assert is_write(text) is writes
