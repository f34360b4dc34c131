"""jobs: looking at them, canceling them, running them again."""

from typing import Any
from uuid import UUID

import pytest

from cli.calling import Call, Floor
from cli.test_enqueue import CONTRACT
from fairlane.core import json
from fairlane.ids import short_id


def one_of_each(floor: Floor, tenant: str) -> dict[str, UUID]:
    """A job in each of the places where a job can be."""
    floor.define("a.task")
    floor.define("slow", queue="bulk")
    jobs = {
        "succeeded": floor.ended(tenant, "a.task", pages=3),
        "dead_letter": floor.died(tenant, "a.task"),
        "running": floor.enqueue(tenant, "a.task"),
    }
    floor.claim(floor.worker("w9"))
    jobs["queued"] = floor.enqueue(tenant, "slow")
    jobs["scheduled"] = floor.enqueue(tenant, "a.task", scheduled_for="2040-01-01T00:00:00Z")
    return jobs


def ids(answer: Any) -> list[str]:
    return [job["id"] for job in answer.json["items"]]


def test_the_list_has_every_job_wherever_it_lives_newest_first(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    jobs = one_of_each(floor, acme)

    answer = fairlane("jobs", "list", "--json")

    assert ids(answer) == [str(job) for job in sorted(jobs.values(), reverse=True)]
    assert answer.json["next_cursor"] is None
    assert all(set(job) >= CONTRACT for job in answer.json["items"])


def test_the_list_can_be_narrowed(fairlane: Call, floor: Floor, acme: str) -> None:
    jobs = one_of_each(floor, acme)
    others = floor.enqueue(floor.tenant("other"), "a.task")

    for status, job in jobs.items():
        expected = [str(job)] if status != "queued" else [str(others), str(job)]
        assert ids(fairlane("jobs", "list", "--status", status, "--json")) == expected
    assert ids(fairlane("jobs", "list", "--tenant", "other", "--json")) == [str(others)]
    assert ids(fairlane("jobs", "list", "--queue", "bulk", "--json")) == [str(jobs["queued"])]
    assert ids(fairlane("jobs", "list", "--definition", "slow", "--json")) == [str(jobs["queued"])]
    assert len(ids(fairlane("jobs", "list", "--tenant", "acme", "--json"))) == 5


def test_pages_go_through_all_places_and_miss_nothing(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    jobs = one_of_each(floor, acme)
    seen: list[str] = []
    cursor: list[str] = []
    for _ in range(3):
        answer = fairlane("jobs", "list", "--limit", "2", "--json", *cursor)
        seen += ids(answer)
        cursor = ["--cursor", str(answer.json["next_cursor"])]

    assert seen == [str(job) for job in sorted(jobs.values(), reverse=True)]
    assert answer.json["next_cursor"] is None


@pytest.mark.parametrize("narrowed", ["", "tenant => 'acme'", "status => 'succeeded'"])
def test_a_page_reads_as_little_with_much_history_as_with_none(
    floor: Floor, acme: str, narrowed: str
) -> None:
    one_of_each(floor, acme)
    floor.fetch(
        """
        insert into fairlane.history
        select fairlane.uuid7(finished_at - n * interval '1 second'), tenant_id, definition_id,
               queue, status, priority, payload, scheduled_for,
               created_at, queued_at, started_at, finished_at - n * interval '1 second',
               attempt, forgiven, lost, max_attempts, worker_id, source, source_ref, dedupe_key,
               concurrency_key, correlation_id, inputs_hash, retry_of, replays, created_by, phase,
               progress, errors, last_error, result
          from fairlane.history h
         cross join generate_series(1, 30000) n
        """
    )
    floor.fetch("analyze fairlane.history")
    # Once before: what a session reads of the catalogue, it reads once.
    floor.fetch(f"select fairlane.newest_jobs({narrowed})")
    (plan,) = floor.one(
        f"explain (analyze, buffers, format json) select fairlane.newest_jobs({narrowed})"
    )

    read = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    assert plan["Plan"]["Actual Rows"] == 50
    # The whole history is more than 1,500 blocks.
    assert read < 400


def test_people_get_a_table(fairlane: Call, floor: Floor, acme: str) -> None:
    jobs = one_of_each(floor, acme)

    head, *rows = fairlane("jobs", "list").out.splitlines()

    assert head.split() == [
        *("ID", "STATUS", "TENANT", "DEFINITION", "QUEUE", "TRIES", "CREATED", "NOTE")
    ]
    assert len(rows) == 5
    dead = next(row for row in rows if "dead_letter" in row)
    assert dead.split()[:7] == [
        *(short_id(jobs["dead_letter"]), "dead_letter", "acme", "a.task", "default", "1/1", "now")
    ]
    assert dead.endswith("it broke")
    assert len({row.index("acme") for row in rows}) == 1


def test_a_table_fits_the_terminal(
    fairlane: Call, floor: Floor, acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_of_each(floor, acme)
    monkeypatch.setenv("COLUMNS", "60")

    lines = fairlane("jobs", "list").out.splitlines()

    assert max(map(len, lines)) == 60
    assert any(line.endswith("…") for line in lines)


def test_a_job_is_found_by_either_id(fairlane: Call, floor: Floor, acme: str) -> None:
    job = floor.ended(acme, "a.task", pages=3)

    by_uuid = fairlane("jobs", "show", str(job), "--json").json
    by_short = fairlane("jobs", "show", short_id(job), "--json").json

    assert by_uuid == by_short
    assert set(by_uuid) >= CONTRACT
    assert (by_uuid["status"], by_uuid["worker"], by_uuid["attempt_count"]) == (
        "succeeded",
        "w1",
        1,
    )
    shown = fairlane("jobs", "show", str(job)).out
    assert 'result          {"pages":3}' in shown
    assert "attempt_count   1 of 3" in shown


def test_what_a_definition_calls_secret_is_never_shown(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    floor.define("login", redact=["/token", "/keys/1", "/a~1b", "/not/there"])
    payload = {"token": "s3cret", "keys": ["open", "s3cret"], "a/b": "s3cret", "user": "ada"}
    job = str(floor.enqueue(acme, "login", payload=payload))

    for words in (
        ("jobs", "show", job),
        ("jobs", "show", job, "--json"),
        ("jobs", "show", job, "--message"),
        ("jobs", "list", "--json"),
    ):
        answer = fairlane(*words)
        assert "s3cret" not in answer.out
        assert "ada" in answer.out
        assert "[redacted]" in answer.out
    assert fairlane("jobs", "show", job, "--json").json["payload"]["keys"] == ["open", "[redacted]"]


def test_a_job_can_be_shown_as_a_message(fairlane: Call, floor: Floor, acme: str) -> None:
    job = floor.enqueue(acme, "a.task", payload={"n": 1}, priority=7)

    message = fairlane("jobs", "show", str(job), "--message").json

    assert list(message) == [
        *("job_id", "tenant_id", "app_id", "definition", "version", "inputs_hash"),
        *("requested_at", "payload", "priority"),
    ]
    assert message["job_id"] == str(job)
    assert message["tenant_id"] == str(floor.one("select id from fairlane.tenant"))
    assert (message["definition"], message["version"]) == ("a.task", "1")
    assert (message["payload"], message["priority"]) == ({"n": 1}, 7)


def test_a_waiting_job_is_canceled_at_once_and_a_running_one_is_asked(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    first = str(floor.enqueue(acme, "a.task"))
    canceled = fairlane("jobs", "cancel", first, "--reason", "wrong file")
    assert (canceled.status, canceled.out) == (0, "canceled\n")
    assert fairlane("jobs", "show", first, "--json").json["last_error"]["reason"] == "wrong file"

    running = str(floor.enqueue(acme, "a.task"))
    floor.claim(floor.worker())
    assert fairlane("jobs", "cancel", running).out == "asked its worker to stop it\n"
    assert fairlane("jobs", "cancel", running, "--json").json["status"] == "running"

    again = fairlane("jobs", "cancel", first)
    assert again.status == 1
    assert again.line == (
        f"job {first} is canceled; to cancel it must be scheduled, queued or running"
    )


def test_a_finished_job_runs_again_as_a_new_one(fairlane: Call, floor: Floor, acme: str) -> None:
    job = str(floor.ended(acme, "a.task"))

    printed = fairlane("jobs", "retry", job)
    assert UUID(printed.out.strip()) != UUID(job)
    new = fairlane("jobs", "retry", job, "--json").json
    assert (new["retry_of"], new["status"]) == (job, "queued")
    refused = fairlane("jobs", "retry", new["id"])
    assert refused.status == 1
    assert "is queued; to retry it must be succeeded" in refused.line


def test_every_change_names_the_person_who_made_it(
    fairlane: Call, floor: Floor, acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    job = str(floor.enqueue(acme, "a.task"))
    fairlane("jobs", "cancel", job)
    fairlane("tenants", "set", acme, "--weight", "2")

    assert floor.fetch("select action, actor from fairlane.audit order by id desc limit 2") == [
        ("tenant.set", "cli:ada"),
        ("job.cancel", "cli:ada"),
    ]


def test_attempts_tell_each_try(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.define("flaky", retry_delays=[0])
    job, worker = floor.enqueue(acme, "flaky"), floor.worker()
    assert fairlane("jobs", "attempts", str(job), "--json").json["items"] == []

    job_id, attempt = floor.claim(worker)[0]
    floor.fail(worker, job_id, attempt, "first")
    floor.claim(worker)
    running = fairlane("jobs", "attempts", str(job), "--json").json["items"]
    assert [(a["attempt"], a["outcome"], a["worker"]) for a in running] == [
        (1, "failed", "w1"),
        (2, "running", "w1"),
    ]
    assert running[0]["error"]["message"] == "first"

    floor.finish(worker, job, 2)
    ended = fairlane("jobs", "attempts", str(job), "--json").json["items"]
    assert [(a["attempt"], a["outcome"]) for a in ended] == [(1, "failed"), (2, "succeeded")]
    assert ended[1]["error"] is None
    assert "first" in fairlane("jobs", "attempts", str(job)).out


def test_an_attempt_that_ended_the_job_is_told_once(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    floor.define("no.letters", dead_letter=False, max_attempts=1)
    job, worker = floor.enqueue(acme, "no.letters"), floor.worker()
    assert floor.fail(worker, *floor.claim(worker)[0]) == "failed"

    attempts = fairlane("jobs", "attempts", str(job), "--json").json["items"]

    assert [(a["attempt"], a["outcome"]) for a in attempts] == [(1, "failed")]


def test_explain_gives_the_reason_first(fairlane: Call, floor: Floor, acme: str) -> None:
    job = str(floor.enqueue(acme, "a.task"))

    why = fairlane("jobs", "explain", job, "--json")
    assert why.json["reason"] == "no_worker"
    assert list(json.loads(why.out))[:4] == ["id", "status", "reason", "detail"]
    assert "no live worker takes jobs" in fairlane("jobs", "explain", job).out


def test_a_waiting_job_is_moved_in_its_lane(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.enqueue(acme, "a.task", priority=7)
    job = floor.enqueue(acme, "a.task")
    assert fairlane("jobs", "priority", str(job)).out == "priority 6\n"
    assert fairlane("jobs", "priority", str(job), "50", "--json").json["priority"] == 50
    floor.claim(floor.worker(), 2)
    assert "is running; to move it" in fairlane("jobs", "priority", str(job), "1").line
