"""Every driver an application may have, in one shape: a transaction to enqueue in.

The tests are plain functions, because Django refuses to work inside an event loop; a driver that
wants one gets a loop of its own.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, ClassVar, TypeVar
from urllib.parse import parse_qs, urlsplit

import asyncpg
import django
import django.db
import psycopg
import psycopg.rows
import psycopg.types.json
import psycopg2
import psycopg2.extras
import sqlalchemy
from django.conf import settings as django_settings
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.ext.asyncio import create_async_engine as async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from fairlane import Enqueued, Fairlane, Task

T = TypeVar("T")


class Undo(Exception):
    """Raised inside a savepoint to roll it back."""


class Transaction(ABC):
    """An open transaction of one driver."""

    is_async: ClassVar[bool] = False
    connection: Any  # what the application would give as `connection=`

    def __init__(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        self.open(url, stack, dressed=dressed)

    @abstractmethod
    def open(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        """Connect and begin; `dressed` sets what an application may set on its connection."""

    @abstractmethod
    def execute(self, sql: str) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[Any]:
        """Left with Undo, it is rolled back."""

    def again(self) -> None:  # noqa: B027 - most drivers do it by themselves
        """Begin another transaction."""

    def enqueue(self, task: Task[..., Any], **args: Any) -> Enqueued:
        return task.enqueue_sync(connection=self.connection, **args)

    def enqueue_many(self, app: Fairlane, items: list[Any]) -> list[Enqueued]:
        return app.enqueue_many_sync(items, connection=self.connection)


class AsyncTransaction(Transaction):
    is_async = True

    def __init__(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        self._runner = stack.enter_context(asyncio.Runner())
        super().__init__(url, stack, dressed=dressed)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def enqueue(self, task: Task[..., Any], **args: Any) -> Enqueued:
        return self.run(task.enqueue(connection=self.connection, **args))

    def enqueue_many(self, app: Fairlane, items: list[Any]) -> list[Enqueued]:
        return self.run(app.enqueue_many(items, connection=self.connection))

    @contextmanager
    def entered(self, manager: Any) -> Iterator[None]:
        """An async context manager, from outside of its loop."""

        async def enter() -> None:
            await manager.__aenter__()

        async def leave(error: BaseException | None) -> None:
            await manager.__aexit__(type(error) if error else None, error, None)

        self.run(enter())
        try:
            yield
        except BaseException as error:
            self.run(leave(error))
            raise
        self.run(leave(None))


# asyncpg ----------------------------------------------------------------------


class Asyncpg(AsyncTransaction):
    def open(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        self.connection = self.run(self.connect(url, stack))
        if dressed:
            for name in ("json", "jsonb"):
                self.run(
                    self.connection.set_type_codec(
                        name, schema="pg_catalog", encoder=json.dumps, decoder=json.loads
                    )
                )
        self.again()

    async def connect(self, url: str, stack: ExitStack) -> Any:
        connection = await asyncpg.connect(url)
        stack.callback(lambda: self.run(connection.close()))
        return connection

    def again(self) -> None:
        self._transaction = self.connection.transaction()
        self.run(self._transaction.start())

    def execute(self, sql: str) -> None:
        self.run(self.connection.execute(sql))

    def commit(self) -> None:
        self.run(self._transaction.commit())

    def rollback(self) -> None:
        self.run(self._transaction.rollback())

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.entered(self.connection.transaction())


class AsyncpgPool(Asyncpg):
    async def connect(self, url: str, stack: ExitStack) -> Any:
        pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
        stack.callback(lambda: self.run(pool.close()))
        connection = await pool.acquire()
        stack.callback(lambda: self.run(pool.release(connection)))
        return connection


# psycopg ----------------------------------------------------------------------


class Psycopg(Transaction):
    def open(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        self.connection = stack.enter_context(psycopg.connect(url))
        if dressed:
            self.connection.row_factory = psycopg.rows.dict_row
            self.connection.cursor_factory = psycopg.RawCursor
            psycopg.types.json.set_json_loads(_unreadable, self.connection)

    def execute(self, sql: str) -> None:
        self.connection.execute(sql.encode())

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def savepoint(self) -> AbstractContextManager[Any]:
        found: AbstractContextManager[Any] = self.connection.transaction()
        return found


class PsycopgAsync(AsyncTransaction):
    def open(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        self.connection = self.run(psycopg.AsyncConnection.connect(url))
        stack.callback(lambda: self.run(self.connection.close()))
        if dressed:
            self.connection.row_factory = psycopg.rows.class_row(dict)
            self.connection.cursor_factory = psycopg.AsyncRawCursor
            psycopg.types.json.set_json_loads(_unreadable, self.connection)

    def execute(self, sql: str) -> None:
        self.run(self.connection.execute(sql.encode()))

    def commit(self) -> None:
        self.run(self.connection.commit())

    def rollback(self) -> None:
        self.run(self.connection.rollback())

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.entered(self.connection.transaction())


class Psycopg2(Transaction):
    def open(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        factory = psycopg2.extras.RealDictCursor if dressed else None
        self.connection = psycopg2.connect(url, cursor_factory=factory)
        stack.callback(self.connection.close)
        if dressed:
            psycopg2.extras.register_default_jsonb(self.connection, loads=_unreadable)
            psycopg2.extras.register_default_json(self.connection, loads=_unreadable)

    def execute(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self.execute("savepoint here")
        try:
            yield
        except Undo:
            self.execute("rollback to savepoint here")
            raise


# SQLAlchemy -------------------------------------------------------------------


class Alchemy(Transaction):
    dialect: ClassVar[str] = "psycopg"

    def open(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        engine = sqlalchemy.create_engine(
            _for_sqlalchemy(url, self.dialect), **(_DRESSED if dressed else {})
        )
        stack.callback(engine.dispose)
        self.connection = self.connect(engine)
        stack.callback(lambda: self.connection.close())

    def connect(self, engine: sqlalchemy.Engine) -> Any:
        return Session(engine)

    def execute(self, sql: str) -> None:
        self.connection.execute(sqlalchemy.text(sql))

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def savepoint(self) -> AbstractContextManager[Any]:
        found: AbstractContextManager[Any] = self.connection.begin_nested()
        return found


class AlchemyPsycopg2(Alchemy):
    dialect = "psycopg2"


class AlchemyConnection(Alchemy):
    def connect(self, engine: sqlalchemy.Engine) -> Any:
        return engine.connect()


class AlchemyScoped(Alchemy):
    def connect(self, engine: sqlalchemy.Engine) -> Any:
        return scoped_session(sessionmaker(engine))


class AlchemyAsync(AsyncTransaction):
    dialect: ClassVar[str] = "asyncpg"

    def open(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        engine = async_engine(_for_sqlalchemy(url, self.dialect), **(_DRESSED if dressed else {}))
        stack.callback(lambda: self.run(engine.dispose()))
        self.connection = self.run(self.connect(engine))
        stack.callback(lambda: self.run(self.connection.close()))

    async def connect(self, engine: Any) -> Any:
        return AsyncSession(engine)

    def execute(self, sql: str) -> None:
        self.run(self.connection.execute(sqlalchemy.text(sql)))

    def commit(self) -> None:
        self.run(self.connection.commit())

    def rollback(self) -> None:
        self.run(self.connection.rollback())

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.entered(self.connection.begin_nested())


class AlchemyAsyncPsycopg(AlchemyAsync):
    dialect = "psycopg"


class AlchemyAsyncConnection(AlchemyAsync):
    async def connect(self, engine: Any) -> Any:
        return await engine.connect()


class AlchemyAsyncScoped(AlchemyAsync):
    async def connect(self, engine: Any) -> Any:
        # An application scopes by task; here each step is a task of its own.
        return async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: "one")


# Django -----------------------------------------------------------------------


class Django(Transaction):
    def open(self, url: str, stack: ExitStack, *, dressed: bool) -> None:
        _set_up_django()
        django.db.connections["default"].settings_dict.update(_for_django(url))
        if dressed:
            options = {"server_side_binding": True}
            django.db.connections["default"].settings_dict["OPTIONS"] = options
        self.connection = self.connect()
        stack.callback(django.db.connections["default"].close)
        self.again()
        if dressed:
            psycopg.types.json.set_json_loads(_unreadable, self.connection.connection)

    def connect(self) -> Any:
        return django.db.connection

    def again(self) -> None:
        django.db.connections["default"].set_autocommit(False)

    def execute(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def savepoint(self) -> AbstractContextManager[Any]:
        from django.db import transaction

        found: AbstractContextManager[Any] = transaction.atomic()
        return found


class DjangoAlias(Django):
    def connect(self) -> Any:
        return django.db.connections["default"]


DRIVERS: list[type[Transaction]] = [
    Asyncpg,
    AsyncpgPool,
    Psycopg,
    PsycopgAsync,
    Psycopg2,
    Alchemy,
    AlchemyPsycopg2,
    AlchemyConnection,
    AlchemyScoped,
    AlchemyAsync,
    AlchemyAsyncPsycopg,
    AlchemyAsyncConnection,
    AlchemyAsyncScoped,
    Django,
    DjangoAlias,
]


Begin = Callable[..., Transaction]


def _unreadable(text: str | bytes) -> Any:
    """An application's own reader of JSON, which ours must not meet."""
    raise AssertionError(f"read as JSON by the application: {text!r}")


_DRESSED: dict[str, Any] = {
    "json_serializer": lambda value: "not json",
    "json_deserializer": _unreadable,
}


def _for_sqlalchemy(url: str, dialect: str) -> str:
    return url.replace("postgresql://", f"postgresql+{dialect}://", 1)


def _for_django(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return {
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname or query.get("host", ""),
        "PORT": str(parts.port or query.get("port", "")),
        "OPTIONS": {},
    }


def _set_up_django() -> None:
    if not django_settings.configured:
        engine = {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}
        django_settings.configure(DATABASES={"default": engine}, USE_TZ=True)
        django.setup()
