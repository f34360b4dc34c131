"""`app.emit` in the application's own transaction, and triggers that code brings along."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from fairlane import Fairlane
from fairlane.errors import PayloadInvalid, RequestInvalid, TenantNotFound
from fairlane.signature import TaskInvalid
from support.drivers import DRIVERS, AsyncTransaction, Transaction

Db = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def db(database: str) -> Iterator[Db]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select fairlane.create_tenant('acme', 'pro')")
        yield connection


@pytest.fixture
def app(database: str, db: Db) -> Iterator[Fairlane]:
    found = Fairlane(database)
    yield found
    found.close_sync()


def events(db: Db) -> list[Any]:
    return db.execute("select name, data, id from fairlane.event order by seq").fetchall()


def triggers(db: Db, *columns: str) -> list[Any]:
    named = ", ".join(columns)
    return db.execute(
        f"select {named} from fairlane.triggers where source = 'code' order by label, tenant"
    ).fetchall()


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.__name__)
def test_an_event_exists_if_and_only_if_the_callers_transaction_commits(
    app: Fairlane, db: Db, database: str, driver: type[Transaction]
) -> None:
    data = {"text": 'café %s $1 :x "\\', "list": [1.5, None]}
    with ExitStack() as stack:
        transaction = driver(database, stack, dressed=True)

        def emit() -> Any:
            how: dict[str, Any] = {"tenant": "acme", "connection": transaction.connection}
            if isinstance(transaction, AsyncTransaction):
                return transaction.run(app.emit("folder.updated", data, **how))
            return app.emit_sync("folder.updated", data, **how)

        emit()
        transaction.rollback()
        assert events(db) == []
        transaction.again()
        emitted = emit()
        assert events(db) == []
        transaction.commit()
    assert events(db) == [("folder.updated", data, emitted.id)]
    assert not emitted.duplicate


def test_without_a_connection_it_uses_its_own(app: Fairlane, db: Db) -> None:
    one = app.emit_sync("a", {"n": 1}, tenant="acme", id="x", correlation_id="c")
    two = app.emit_sync("a", {"n": 2}, tenant="acme", id="x")
    assert (one.id, one.duplicate, two.duplicate) == ("x", False, True)
    assert events(db) == [("a", {"n": 1}, "x")]


def test_what_cannot_be_an_event_is_refused_before_it_is_sent(app: Fairlane) -> None:
    with pytest.raises(TenantNotFound):
        app.emit_sync("a", tenant="nobody")
    with pytest.raises(PayloadInvalid):
        app.emit_sync("a", [1], tenant="acme")  # type: ignore[arg-type]
    with pytest.raises(PayloadInvalid):
        app.emit_sync("a", {"x": float("nan")}, tenant="acme")
    with pytest.raises(RequestInvalid):
        app.emit_sync("no name", tenant="acme")
    with pytest.raises(RequestInvalid):
        app.emit_sync(7, tenant="acme")  # type: ignore[arg-type]


def test_decorators_bring_triggers_along_above_and_below_the_job(app: Fairlane, db: Db) -> None:
    @app.cron("0 3 * * *", tz="Europe/Berlin", tenant="acme", payload={"at": "{{schedule.time}}"})
    @app.job("above")
    def above(at: str) -> None: ...

    @app.job("below")
    @app.on("provider.*", tenant=["acme"], filter={"size": {"gte": 3}})
    @app.on("list.created")
    def below(path: str, size: int = 1) -> None: ...

    app.register_sync()
    found = triggers(
        db, "label", "tenant", "cron_expr", "timezone", "event_name", "payload_template", "filter"
    )
    assert found == [
        ("above: schedule", "acme", "0 3 * * *", "Europe/Berlin", None,
         {"at": "{{schedule.time}}"}, None),
        ("below: event", "acme", None, None, "provider.*", {"path": "{{event.path}}"},
         {"size": {"gte": 3}}),
        ("below: event 2", None, None, None, "list.created", {"path": "{{event.path}}"}, None),
    ]  # fmt: skip
    assert above("x") is None, "it is still the function"


def test_registering_again_changes_nothing_and_keeps_a_pause(
    app: Fairlane, db: Db, database: str
) -> None:
    @app.cron("0 3 * * *", tenant="acme")
    @app.job("a")
    def task() -> None: ...

    app.register_sync()
    db.execute("update fairlane.trigger set is_enabled = false where source = 'code'")
    app.register_sync()
    assert triggers(db, "is_enabled", "revision") == [(False, 1)]

    later = Fairlane(database)

    @later.cron("0 4 * * *", tenant="acme")
    @later.job("a")
    def changed() -> None: ...

    later.register_sync()
    later.close_sync()
    assert triggers(db, "cron_expr", "is_enabled", "revision") == [("0 4 * * *", False, 2)]


def test_what_the_code_no_longer_says_is_taken_away(app: Fairlane, db: Db, database: str) -> None:
    @app.on("x")
    @app.job("a")
    def one() -> None: ...

    @app.on("y")
    @app.job("b")
    def two() -> None: ...

    app.register_sync()
    later = Fairlane(database)

    @later.job("a")
    def alone() -> None: ...

    later.register_sync()
    later.close_sync()
    assert triggers(db, "definition_key") == [("b",)], "another app's is left alone"


def test_a_trigger_for_a_tenant_that_is_not_there_waits(
    app: Fairlane, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.on("x", tenant=["acme", "late"])
    @app.job("a")
    def one() -> None: ...

    app.register_sync()
    assert triggers(db, "tenant") == [("acme",)]
    assert "late" in caplog.text
    db.execute("select fairlane.create_tenant('late', 'pro')")
    app.register_sync()
    assert triggers(db, "tenant") == [("acme",), ("late",)]


def test_what_can_never_work_is_refused_where_it_is_written(app: Fairlane) -> None:
    with pytest.raises(TaskInvalid, match="never comes"):

        @app.cron("0 0 31 2 *", tenant="acme")
        @app.job("a")
        def one() -> None: ...

    with pytest.raises(TaskInvalid, match="no time zone"):

        @app.cron("0 0 * * *", tz="Mars/Olympus", tenant="acme")
        @app.job("b")
        def two() -> None: ...

    with pytest.raises(TaskInvalid, match="/payload_template/n"):

        @app.on("x", payload={"n": "always {{event.text}}"})
        @app.job("c")
        def three(n: int) -> None: ...


def test_a_trigger_without_a_task_is_refused(app: Fairlane) -> None:
    @app.on("x")
    def alone() -> None: ...

    @app.job("a")
    def task() -> None: ...

    with pytest.raises(TaskInvalid, match="is no task"):
        app.register_sync()
