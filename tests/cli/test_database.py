"""A database that is not there, or not as it should be, is told in one line."""

from pathlib import Path

import psycopg
import pytest

from cli.calling import Call
from support.cluster import Cluster

ANY = ("jobs", "list")


def test_a_url_of_another_database_is_refused_without_its_password(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", "mysql://root:s3cret@db/app")

    answer = call(*ANY)

    assert answer.status == 1
    assert answer.line.startswith("FAIRLANE_DATABASE_URL must be a URL like postgresql://")
    assert "s3cret" not in answer.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cret@localhost:1/app",
        "postgresql://u:s3cret@/app?host=/nowhere",
        "postgresql://u:s3cret@localhost:1/app?sslmode=sometimes",
    ],
)
@pytest.mark.parametrize("words", [ANY, ("migrate",), ("tenants", "create", "acme")])
def test_a_server_that_is_not_there_is_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch, url: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", url)

    answer = call(*words)

    assert answer.status == 1
    assert answer.line
    assert "s3cret" not in answer.err


def test_a_database_that_is_not_there_is_one_line(
    call: Call, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", cluster.named("nowhere"))

    answer = call(*ANY)

    assert answer.status == 1
    assert 'database "nowhere" does not exist' in answer.line


def test_without_any_database_one_is_told_how_to_get_one(call: Call, anywhere: Path) -> None:
    answer = call(*ANY)

    assert answer.status == 1
    assert answer.line == (
        f"no database is configured and none runs in {anywhere / '.fairlane'}; "
        "run `fairlane up`, or set FAIRLANE_DATABASE_URL"
    )


def test_a_wrong_setting_is_refused_by_its_name(
    fairlane: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_LOG_FORMAT", "xml")

    answer = fairlane(*ANY)

    assert answer.status == 1
    assert answer.line == "FAIRLANE_LOG_FORMAT must be console or json, not 'xml'"


def test_a_missing_schema_says_what_to_run(
    call: Call, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", empty_database)

    answer = call(*ANY)

    assert answer.status == 1
    assert answer.line.endswith("not applied; run: fairlane migrate")


def test_a_schema_from_the_future_is_left_alone(fairlane: Call, database: str) -> None:
    with psycopg.connect(database) as conn:
        conn.execute("insert into fairlane.migration values (9999, '9999_later', 'x')")

    for words in (ANY, ("migrate",), ("migrate", "--check"), ("tenants", "create", "acme")):
        answer = fairlane(*words)
        assert answer.status == 1
        assert answer.line.startswith("the schema is at migration 9999, this code knows up to")

    with psycopg.connect(database) as conn:
        assert conn.execute("select from fairlane.tenant").fetchall() == []


# migrate --------------------------------------------------------------------


def test_migrate_brings_an_empty_database_up_to_date_once(
    call: Call, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", empty_database)

    pending = call("migrate", "--check")
    assert pending.status == 1
    assert "0001_initial" in pending.line

    assert call("migrate", "--check", "--json").json["pending"][0] == "0001_initial"

    first = call("migrate")
    assert first.status == 0
    assert first.out.startswith("applied 0001_initial, ")

    assert call("migrate").out == "the schema is up to date\n"
    assert call("migrate", "--json").json == {"applied": []}
    assert call("migrate", "--check").status == 0
    assert call("migrate", "--sql").out == ""
    assert call("plans", "list").status == 0


def test_migrate_says_what_it_would_lock(
    call: Call, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", empty_database)

    shown = call("migrate", "--plan").out
    assert "0002_definitions\n  definition: access exclusive (nobody reads or writes it)" in shown
    first = call("migrate", "--plan", "--json").json["pending"][0]
    assert first == {"name": "0001_initial", "locks": {}}
    assert call("migrate", "--check").status == 1, "it changed nothing"


def test_migrate_can_print_what_it_would_run(
    call: Call, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", empty_database)

    script = call("migrate", "--sql")

    assert script.status == 0
    assert "create table fairlane.job (" in script.out
    with psycopg.connect(empty_database) as conn:
        assert conn.execute("select to_regclass('fairlane.job')").fetchone() == (None,)
