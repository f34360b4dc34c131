"""doctor finds what is wrong, says what to do, and exits 1 where it must not stay so."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import pytest

from cli.calling import Call, Floor
from fairlane import doctor
from fairlane.doctor import Check, without_password
from support.clock import Clock


def check(fairlane: Call, name: str) -> dict[str, Any]:
    checks = {each["name"]: each for each in fairlane("doctor", "--json").json["checks"]}
    found: dict[str, Any] = checks[name]
    return found


def test_every_check_is_made_and_has_a_next_step_where_it_is_not_well(
    fairlane: Call, floor: Floor
) -> None:
    # The server of the tests is careless on purpose; that is its only fault.
    floor.fetch("select fairlane.make_partitions()")
    answer = fairlane("doctor", "--json")

    bad = [each["name"] for each in answer.json["checks"] if each["verdict"] != "ok"]
    assert bad == ["server settings"]
    assert (answer.status, answer.json["ok"]) == (1, False)
    assert all(each["next_step"] for each in answer.json["checks"] if each["verdict"] != "ok")
    assert {each["name"] for each in answer.json["checks"]} == {
        *("database", "schema", "server settings", "row security", "oldest transaction", "clock"),
        "dead rows",
        *("partitions", "default partition", "indexes", "workers", "unserved queues"),
        *("stuck jobs", "gate counters", "lanes", "orphaned lanes", "old partitions"),
        *("self-audit", "alerts", "notifications", "calls"),
    }
    people = fairlane("doctor").out
    assert "fail  server settings: " in people
    assert "fsync is off" in people
    assert "      -> turn it on: " in people


def test_all_well_exits_0(fairlane: Call, floor: Floor, monkeypatch: pytest.MonkeyPatch) -> None:
    careful = [each for each in doctor.SERVER_CHECKS if each.__name__ != "server_settings"]
    monkeypatch.setattr(doctor, "SERVER_CHECKS", careful)

    answer = fairlane("doctor", "--json")

    assert (answer.status, answer.json["ok"]) == (0, True)


def test_settings_are_told_with_where_they_came_from_and_without_secrets(
    fairlane: Call, anywhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (anywhere / "fairlane.toml").write_text("lease_seconds = 30")
    monkeypatch.setenv("FAIRLANE_SECRET_KEY", "s3cret")
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", "postgresql://u:s3cret@localhost:1/app")

    answer = fairlane("doctor", "--json")

    told = {each["name"]: (each["value"], each["source"]) for each in answer.json["settings"]}
    assert told["lease_seconds"] == ("30", "fairlane.toml")
    assert told["poll_seconds"] == ("1", "default")
    assert told["secret_key"] == ("***", "FAIRLANE_SECRET_KEY")
    assert told["database_url"] == (
        "postgresql://u:***@localhost:1/app",
        "FAIRLANE_DATABASE_URL",
    )
    assert "s3cret" not in answer.out + fairlane("doctor").out


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p%40ss@db:5433/app?sslmode=require", "postgresql://u:***@db:5433/app"),
        ("postgresql://u@db/app?password=p&x=1", "postgresql://u@db/app?password=***&x=1"),
        ("postgresql://u:a:b@db/app", "postgresql://u:***@db/app"),
        ("postgresql:///app?host=/run/pg&user=u", "postgresql:///app?host=/run/pg&user=u"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url).startswith(shown)


def test_a_server_that_is_away_is_the_only_finding(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = call("doctor", "--json")
    assert nowhere.status == 1
    assert "none runs in" in nowhere.json["checks"][0]["found"]

    monkeypatch.setenv("FAIRLANE_DATABASE_URL", "postgresql://localhost:1/app")
    away = call("doctor", "--json")
    assert away.status == 1
    assert [each["name"] for each in away.json["checks"]] == ["database"]
    assert "the database does not answer" in away.json["checks"][0]["found"]


def test_a_missing_schema_is_found_and_nothing_else_asked_of_it(
    call: Call, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", empty_database)

    answer = call("doctor", "--json")

    assert answer.status == 1
    schema = answer.json["checks"][1]
    assert (schema["name"], schema["verdict"]) == ("schema", "fail")
    assert schema["next_step"] == "run: fairlane migrate"
    assert "lanes" not in [each["name"] for each in answer.json["checks"]]


def test_an_old_transaction_is_found(
    fairlane: Call, floor: Floor, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check(fairlane, "oldest transaction")["verdict"] == "ok"
    monkeypatch.setattr("fairlane.doctor.server.OLD", -1.0)
    with psycopg.connect(database, application_name="a report") as conn:
        conn.execute("select 1")
        found = check(fairlane, "oldest transaction")

    assert found["verdict"] == "warn"
    assert "(a report) is open for 0 min" in found["found"]


def test_a_clock_that_is_off_is_found(fairlane: Call, clock: Clock) -> None:
    assert check(fairlane, "clock")["verdict"] == "ok"
    clock.advance(seconds=90)

    found = check(fairlane, "clock")
    assert found["verdict"] == "warn"
    assert "90 s apart" in found["found"]


def test_missing_partitions_are_found(fairlane: Call, floor: Floor, clock: Clock) -> None:
    clock.advance(seconds=40 * 86_400)
    assert check(fairlane, "partitions")["verdict"] == "warn"

    floor.fetch("select fairlane.make_partitions()")
    assert check(fairlane, "partitions")["verdict"] == "ok"


def test_jobs_in_the_default_partition_are_found(
    fairlane: Call, floor: Floor, acme: str, clock: Clock
) -> None:
    assert check(fairlane, "default partition")["verdict"] == "ok"
    clock.advance(seconds=40 * 86_400)
    floor.ended(acme, "a.task")

    found = check(fairlane, "default partition")
    assert (found["verdict"], found["found"]) == (
        "warn",
        "1 finished jobs are in history_default",
    )


def test_an_index_that_is_not_valid_is_found(fairlane: Call, floor: Floor, acme: str) -> None:
    for _ in range(2):
        floor.enqueue(acme, "a.task")
    with pytest.raises(psycopg.errors.UniqueViolation):
        floor.fetch("create unique index concurrently broken on fairlane.job (tenant_id)")

    found = check(fairlane, "indexes")
    assert found["verdict"] == "fail"
    assert "fairlane.broken" in found["found"]


def test_a_worker_that_stopped_answering_is_found(
    fairlane: Call, floor: Floor, acme: str, clock: Clock
) -> None:
    worker = floor.worker("w7", lease=15)
    floor.enqueue(acme, "a.task")
    floor.claim(worker)
    assert check(fairlane, "workers")["verdict"] == "ok"

    clock.advance(seconds=20)
    found = check(fairlane, "workers")
    assert found["verdict"] == "warn"
    assert "w7 on h1" in found["found"]

    # Nobody has come for its jobs: there is nobody.
    clock.advance(seconds=60)
    assert check(fairlane, "workers")["verdict"] == "fail"


def test_a_queue_that_nobody_serves_is_found(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.enqueue(acme, "a.task")

    found = check(fairlane, "unserved queues")
    assert (found["verdict"], found["next_step"]) == ("warn", "fairlane worker --queue default=8")

    floor.worker()
    assert check(fairlane, "unserved queues")["verdict"] == "ok"


def test_a_stuck_job_is_found(fairlane: Call, floor: Floor, acme: str, clock: Clock) -> None:
    job = floor.enqueue(acme, "a.task")
    floor.claim(floor.worker())
    clock.advance(seconds=599)
    assert check(fairlane, "stuck jobs")["verdict"] == "ok"

    clock.advance(seconds=2)
    found = check(fairlane, "stuck jobs")
    assert found["verdict"] == "warn"
    assert str(job) in found["found"]


@pytest.mark.parametrize("what", ["gate", "lane"])
def test_a_counter_that_tells_no_truth_is_found(
    fairlane: Call, floor: Floor, acme: str, what: str
) -> None:
    floor.enqueue(acme, "a.task")
    floor.claim(floor.worker())
    assert check(fairlane, "gate counters")["verdict"] == "ok"

    floor.fetch(f"update fairlane.{what} set running = running + 1")
    found = check(fairlane, "gate counters")
    assert found["verdict"] == "fail"
    assert f"{what} " in found["found"]
    assert "counts 2 running, there are 1" in found["found"]


def test_a_lane_that_nobody_would_come_for_is_found(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    floor.ended(acme, "a.task")
    floor.enqueue(acme, "a.task")
    # The lane is idle and has a queued job, and word of it is on its way.
    assert check(fairlane, "lanes")["verdict"] == "ok"
    floor.one("select fairlane.sweep()")
    assert check(fairlane, "lanes")["verdict"] == "ok"

    floor.fetch("update fairlane.share set ready = false")
    assert check(fairlane, "lanes")["verdict"] == "fail"
    floor.fetch("update fairlane.lane set state = 'idle'")
    found = check(fairlane, "lanes")
    assert found["verdict"] == "fail"
    assert "acme in default" in found["found"]


def test_dead_rows_that_vacuum_left_are_found(
    fairlane: Call, floor: Floor, acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    floor.enqueue(acme, "a.task")
    for _ in range(3):
        floor.fetch("update fairlane.job set priority = priority + 1")
    floor.one("select pg_stat_force_next_flush()")

    found = check(fairlane, "dead rows")

    assert found["verdict"] == "ok"
    assert "fairlane.job has 3 dead rows and 1 live ones" in found["found"]
    monkeypatch.setattr("fairlane.doctor.tables.MANY_DEAD_ROWS", 2)
    assert check(fairlane, "dead rows")["verdict"] == "warn"


def test_an_index_that_is_missing_is_found(fairlane: Call, floor: Floor) -> None:
    assert check(fairlane, "indexes")["verdict"] == "ok"
    floor.fetch("drop index fairlane.job_due")
    found = check(fairlane, "indexes")
    assert (found["verdict"], found["found"]) == ("fail", "missing: job_due")


def test_a_partition_that_should_be_gone_is_found(
    fairlane: Call, floor: Floor, clock: Clock
) -> None:
    assert check(fairlane, "old partitions")["verdict"] == "ok"
    clock.advance(seconds=60 * 86_400)
    found = check(fairlane, "old partitions")
    assert found["verdict"] == "warn"
    assert "history_" in found["found"]
    floor.fetch("select fairlane.prune()")
    assert check(fairlane, "old partitions")["verdict"] == "warn", "nobody has counted them"
    for _ in range(2):  # a thousand hours at a time
        floor.fetch("select fairlane.open_slices(fairlane.clock())")
    floor.fetch("update fairlane.slice set is_final = true")
    floor.fetch("select fairlane.prune()")
    assert check(fairlane, "old partitions")["verdict"] == "ok"


def test_a_queue_that_keeps_its_jobs_for_longer_than_any_plan_has_no_old_partitions(
    fairlane: Call, floor: Floor, clock: Clock
) -> None:
    floor.fetch("""select fairlane.set_queue('bulk', '{"retention_days": 300}')""")
    clock.advance(days=60)
    assert check(fairlane, "old partitions")["verdict"] == "ok"


def test_a_lane_of_nobody_is_found(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.enqueue(acme, "a.task")
    floor.one("select fairlane.sweep()")
    assert check(fairlane, "orphaned lanes")["verdict"] == "ok"
    floor.fetch("update fairlane.lane set gates = gates || gen_random_uuid()")
    assert check(fairlane, "orphaned lanes")["verdict"] == "fail"


def test_a_broken_promise_is_found_and_is_trouble(fairlane: Call, floor: Floor, acme: str) -> None:
    assert "a worker or a scheduler does" in check(fairlane, "self-audit")["found"]
    floor.enqueue(acme, "a.task")
    floor.claim(floor.worker())
    floor.fetch("select * from fairlane.check_promises()")
    assert "no violation" in check(fairlane, "self-audit")["found"]
    floor.fetch("update fairlane.lane set running = 9")
    floor.fetch("select * from fairlane.check_promises(every => -1)")
    found = check(fairlane, "self-audit")
    assert found["verdict"] == "fail"
    assert "lane_counts was broken 1 times" in found["found"]
    assert '"counted": [0, 0, 9]' in found["found"]


def test_an_alert_that_fires_is_found(fairlane: Call, floor: Floor) -> None:
    fire = (
        "insert into fairlane.alert (rule, subject, state, severity, value, threshold, since) "
        "values (%s, 'default', 'firing', %s, 1, 0, now())"
    )
    assert check(fairlane, "alerts")["verdict"] == "ok"
    floor.fetch(fire, "tenant_limit", "info")
    assert check(fairlane, "alerts")["verdict"] == "ok"
    floor.fetch(fire, "queue_backlog", "warning")
    assert check(fairlane, "alerts")["verdict"] == "warn"
    floor.fetch(fire, "no_worker", "critical")
    found = check(fairlane, "alerts")
    assert found["verdict"] == "fail"
    assert found["found"].startswith("2 firing, 0 seen or silenced: default: due jobs wait")
    floor.fetch("update fairlane.alert set state = 'acknowledged'")
    assert check(fairlane, "alerts")["verdict"] == "warn"


def test_news_that_does_not_get_out_is_found(fairlane: Call, floor: Floor) -> None:
    assert check(fairlane, "calls")["found"] == "no http definition"
    fairlane("alerts", "channel", "ops", "--url", "https://x.example/h")
    unset = check(fairlane, "calls")
    assert unset["verdict"] == "warn"
    assert "FAIRLANE_HTTP_ALLOW and FAIRLANE_SECRET_KEY not set here" in unset["found"]
    fairlane("alerts", "test", "dead_letters")
    assert check(fairlane, "notifications")["verdict"] == "ok"
    floor.fetch("update fairlane.definition set is_active = false")
    fairlane("alerts", "test", "dead_letters")
    found = check(fairlane, "notifications")
    assert found["verdict"] == "warn"
    assert "1 notifications of the last day did not get out by ops" in found["found"]


def test_what_only_workers_and_servers_read_is_shown_too(
    fairlane: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_HTTP_ALLOW", "*.example.com")
    monkeypatch.setenv("FAIRLANE_SMTP_PASSWORD", "s3cret")
    answer = fairlane("doctor", "--json")
    told = {each["name"]: (each["value"], each["source"]) for each in answer.json["settings"]}
    assert told["http_allow"] == ("*.example.com", "FAIRLANE_HTTP_ALLOW")
    assert told["command_path"] == ("the system's", "default")
    assert told["api_rate"] == ("1000", "default")
    assert told["smtp_password"] == ("***", "FAIRLANE_SMTP_PASSWORD")
    assert "s3cret" not in answer.out


def test_what_cannot_be_looked_at_is_told_and_the_rest_is_looked_at(
    fairlane: Call, floor: Floor
) -> None:
    """One table that was gone, or a right that was missing, and the doctor had nothing to say."""
    floor.fetch("drop table fairlane.promise cascade")
    found = check(fairlane, "promises")
    assert found["verdict"] == "fail"
    assert found["found"] == 'it cannot be looked at: relation "fairlane.promise" does not exist'
    assert "fairlane migrate" in found["next_step"]
    assert check(fairlane, "alerts")["verdict"] == "ok"


async def test_who_has_no_rights_is_told_which_role_has(database: str) -> None:
    admin = await asyncpg.connect(database)
    role = f"nobody_{uuid4().hex[:8]}"
    try:
        await admin.execute(f"create role {role}; grant {role} to current_user")
        await admin.execute(
            f"alter database {await admin.fetchval('select current_database()')} set role = {role}"
        )
        checks = await doctor.examine(database)
    finally:
        await admin.execute(f"drop owned by {role}; drop role {role}")
        await admin.close()
    assert [each.name for each in checks] == [
        *("database", "schema", "server settings", "row security")
    ]
    assert checks[1].verdict == "fail"
    assert checks[1].found == "it may not be looked at: permission denied for schema fairlane"
    assert "the role that owns the schema" in (checks[1].next_step or "")


async def test_a_database_that_goes_away_meanwhile_is_told(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leaves(conn: asyncpg.Connection) -> Check:
        await conn.execute("select pg_terminate_backend(pg_backend_pid())")
        raise AssertionError("it answered")

    monkeypatch.setattr(doctor, "SCHEMA_CHECKS", [leaves])
    checks = await doctor.examine(database)
    assert (checks[-1].name, checks[-1].verdict) == ("database", "fail")
    assert checks[-1].found.startswith("it went away: ")
