"""Which connections are taken, and what is said of the others."""

import asyncio
import sqlite3
import subprocess
import sys
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from fairlane import Fairlane, Task
from fairlane.client.adapters import ConnectionInvalid

Db = psycopg.Connection[tuple[Any, ...]]


def jobs(db: Db) -> Any:
    row = db.execute("select count(*) from fairlane.job").fetchone()
    return row and row[0]


def test_an_asyncpg_connection_without_a_transaction_commits_at_once(
    database: str, db: Db, send: Task[..., None]
) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(database)
        try:
            await send.enqueue(tenant="acme", number=1, connection=connection)
            assert jobs(db) == 1
        finally:
            await connection.close()

    asyncio.run(main())


def test_a_sync_connection_serves_in_async_code_too(
    database: str, db: Db, send: Task[..., None]
) -> None:
    async def main() -> None:
        with psycopg.connect(database) as connection:
            await send.enqueue(tenant="acme", number=1, connection=connection)
            assert jobs(db) == 0
        assert jobs(db) == 1

    asyncio.run(main())


def test_a_connection_of_the_applications_own_class_is_known_by_its_parents(
    database: str, db: Db, send: Task[..., None]
) -> None:
    class Traced(psycopg.Connection[Any]):
        pass

    Traced.__module__ = "shop.tracing"
    with Traced.connect(database) as connection:
        send.enqueue_sync(tenant="acme", number=1, connection=connection)

    assert jobs(db) == 1


def test_an_async_connection_in_a_sync_call_is_refused_and_told_what_to_call(
    database: str, db: Db, send: Task[..., None]
) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(database)
        engine = create_async_engine(database.replace("postgresql:", "postgresql+asyncpg:"))
        third = await psycopg.AsyncConnection.connect(database)
        try:
            for each in (connection, AsyncSession(engine), third):
                with pytest.raises(ConnectionInvalid, match="call enqueue instead of enqueue_sync"):
                    send.enqueue_sync(tenant="acme", number=1, connection=each)
        finally:
            await connection.close()
            await third.close()

    asyncio.run(main())


def test_what_is_no_connection_is_refused_with_the_list_of_those_that_are(
    database: str, db: Db, send: Task[..., None]
) -> None:
    engine = sqlalchemy.create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    sqlite = sqlalchemy.create_engine("sqlite://")
    with (
        psycopg.connect(database) as connection,
        psycopg2.connect(database).cursor() as cursor,
        Session(sqlite) as session,
    ):
        things = [database, object(), 1, engine, connection.cursor(), cursor, session, asyncpg]
        for thing in [*things, sqlite3.Connection]:
            with pytest.raises(ConnectionInvalid) as refused:
                send.enqueue_sync(tenant="acme", number=1, connection=thing)
            assert type(thing).__qualname__ in str(refused.value)
            assert "give one of: asyncpg Connection, psycopg Connection" in str(refused.value)
        cursor.connection.close()
    sqlite.dispose()
    assert jobs(db) == 0


def test_no_driver_is_imported_that_the_application_does_not_use(database: str, db: Db) -> None:
    program = f"""
import sys
from fairlane import Fairlane
app = Fairlane({database!r})
@app.job("invoices.send")
def send(number: int): ...
send.enqueue_sync(tenant="acme", number=1)
drivers = {{"psycopg", "psycopg2", "sqlalchemy", "django"}}
print(drivers & {{name.partition(".")[0] for name in sys.modules}})
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("set()\n", "")
    assert jobs(db) == 1


def test_wrong_arguments_are_refused_before_the_connection_is_touched(
    database: str, app: Fairlane, send: Task[..., None]
) -> None:
    with psycopg.connect(database) as connection:
        with pytest.raises(Exception, match="/number: Expected `int`, got `str`"):
            send.enqueue_sync(tenant="acme", number="one", connection=connection)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
