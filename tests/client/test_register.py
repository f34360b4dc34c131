"""The tasks of an app are defined in the database before their first job."""

import subprocess
import sys
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from fairlane import Fairlane
from fairlane.errors import DefinitionInvalid, QueueNotFound
from support.shop import send_of, shop

Db = psycopg.Connection[tuple[Any, ...]]


def definition(db: Db, key: str) -> dict[str, Any]:
    row = db.execute("select to_jsonb(d) from fairlane.definition d where key = %s", [key])
    [(found,)] = row.fetchall()
    assert isinstance(found, dict)
    return found


def changes(db: Db) -> list[Any]:
    rows = db.execute("select action, target from fairlane.audit where action ~ 'definition'")
    return rows.fetchall()


def test_what_the_decorator_says_is_what_the_database_knows(app: Fairlane, db: Db) -> None:
    @app.job(
        "reports.generate",
        version="2.1",
        queue="bulk",
        timeout=timedelta(minutes=10),
        max_attempts=5,
        retry_delays=[1, timedelta(minutes=1)],
        max_running=20,
        max_running_per_tenant=2,
        starts_per_minute=30,
        reuse=True,
        dead_letter=False,
        redact=["/token"],
        isolation="process",
        memory_mb=512,
    )
    def generate(report_id: int, token: str = "") -> None:
        """Generates a report.

        At length.
        """

    assert app.register_sync() == {
        ("invoices.send", "1"): "created",
        ("reports.generate", "2.1"): "created",
    }

    found = definition(db, "reports.generate")
    expected = {
        "version": "2.1",
        "description": "Generates a report.",
        "executor": "python",
        "settings": {
            "task": f"{__name__}:{generate.function.__qualname__}",
            "isolation": "process",
            "memory_mb": 512,
        },
        "arg_schema": generate.signature.schema,
        "queue": "bulk",
        "timeout_seconds": 600,
        "max_attempts": 5,
        "retry_delays": [1, 60],
        "max_running": 20,
        "max_running_per_tenant": 2,
        "starts_per_minute": 30,
        "reuse": True,
        "dead_letter": False,
        "redact": ["/token"],
        "is_active": True,
    }
    assert {name: found[name] for name in expected} == expected


def test_the_same_again_changes_nothing(app: Fairlane, database: str, db: Db) -> None:
    app.register_sync()
    again = shop(database)

    assert again.register_sync() == {("invoices.send", "1"): "same"}
    again.close_sync()
    assert changes(db) == [("definition.created", "invoices.send")]


def test_tasks_are_defined_once_and_those_added_later_then(app: Fairlane, db: Db) -> None:
    send_of(app).enqueue_sync(tenant="acme", number=1)
    send_of(app).enqueue_sync(tenant="acme", number=2)

    @app.job("late")
    def late() -> None:
        pass

    late.enqueue_sync(tenant="acme")

    assert changes(db) == [("definition.created", "invoices.send"), ("definition.created", "late")]


def test_a_database_that_was_made_anew_gets_its_definitions_again(app: Fairlane, db: Db) -> None:
    send_of(app).enqueue_sync(tenant="acme", number=1)
    db.execute("delete from fairlane.job")
    db.execute("delete from fairlane.definition")

    job = send_of(app).enqueue_sync(tenant="acme", number=2)

    assert app.get_sync(job.id).payload["number"] == 2


def test_code_brings_commands_and_calls_along_all_or_none(app: Fairlane, db: Db) -> None:
    sync = {"key": "sync", "executor": "command", "command": {"argv": ["zoltag", "sync"]}}
    solve = {"key": "solve", "executor": "http", "http": {"url": "https://app.example/solve"}}

    assert app.apply_definitions_sync([sync]) == {("sync", "1"): "created"}
    with pytest.raises(DefinitionInvalid, match="/definitions/1/queue"):
        app.apply_definitions_sync([solve, {**sync, "queue": "nowhere"}])
    assert app.apply_definitions_sync([{**sync, "max_attempts": 9}, solve]) == {
        ("sync", "1"): "changed",
        ("solve", "1"): "created",
    }
    assert definition(db, "sync")["max_attempts"] == 9


def test_a_task_for_a_queue_that_is_not_there_is_refused(app: Fairlane, db: Db) -> None:
    @app.job("lost", queue="nowhere")
    def lost() -> None:
        pass

    with pytest.raises(QueueNotFound, match='"lost" names the queue "nowhere"'):
        lost.enqueue_sync(tenant="acme")


def test_processes_that_start_at_once_all_get_their_tasks_defined(database: str, db: Db) -> None:
    program = f"""
import sys
sys.path[:0] = {[p for p in sys.path if p]!r}
from support.shop import send_of, shop
app = shop({database!r})
sys.stdin.readline()
send_of(app).enqueue_sync(tenant="acme", number=1)
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    with psycopg.connect(database) as gate:
        gate.execute("lock table fairlane.definition in share mode")
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        waiting = "select count(*) from pg_locks where not granted and database = %s"
        [oid] = gate.execute("select oid from pg_database where datname = current_database()")
        while db.execute(waiting, [oid[0]]).fetchone() != (4,):
            assert all(process.poll() is None for process in processes)

    said = [process.communicate(timeout=30)[1] for process in processes]
    assert said == ["", "", "", ""]
    assert db.execute("select count(*) from fairlane.job").fetchone() == (4,)
    assert changes(db) == [("definition.created", "invoices.send")]
