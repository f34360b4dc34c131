"""`fairlane ops` and `fairlane usage`: tables for people, the API's shapes for programs."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest

from cli.calling import Call, Floor
from support.clock import Clock

TODAY = "select (fairlane.clock() at time zone 'UTC')::date"


def worked(floor: Floor, acme: str) -> None:
    """One job has succeeded, one is dead, two wait and one runs in a phase."""
    floor.ended(acme, "a.task")
    floor.died(acme, "a.task")
    for _ in range(3):
        floor.enqueue(acme, "a.task")
    ((job, _),) = floor.claim(floor.worker("w2"))
    floor.fetch("update fairlane.job set phase = 'inventory' where id = %s", job)
    floor.fetch("select fairlane.count_ended(10)")


def test_each_question_has_its_table_and_its_json(fairlane: Call, floor: Floor, acme: str) -> None:
    worked(floor, acme)
    assert "a.task  default  2       0" in fairlane("ops", "backlog").out
    assert "inventory" in fairlane("ops", "active").out
    assert "nothing has run for 10m" in fairlane("ops", "slow").err
    assert "inventory" in fairlane("ops", "slow", "--seconds", "0").out
    assert "50.0%" in fairlane("ops", "errors").out
    assert fairlane("ops", "throughput").out.splitlines()[1].startswith("acme    1          2")
    for question in ("backlog", "active", "errors", "throughput"):
        (row,) = fairlane("ops", question, "--json").json["items"]
        assert row
    assert fairlane("ops", "slow", "--json").json == {"items": [], "next_cursor": None}


def test_nothing_to_tell_is_said_in_words(fairlane: Call) -> None:
    for question in ("backlog", "active", "slow", "errors", "throughput"):
        answer = fairlane("ops", question)
        assert (answer.status, answer.out) == (0, "")
        assert answer.err.startswith("nothing ")


def test_usage_is_told_by_day_as_a_table_json_and_csv(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    worked(floor, acme)
    day = str(floor.one(TODAY))
    table = fairlane("usage", "--tenant", acme).out.splitlines()
    assert table[1].split()[:5] == [day, acme, "2", "1", "2"]
    (row,) = fairlane("usage", "--tenant", acme, "--from", day, "--to", day, "--json").json["items"]
    assert (row["runs"], row["succeeded"], row["failed"], row["attempts"]) == (2, 1, 1, 2)
    (line,) = csv.DictReader(io.StringIO(fairlane("usage", "--csv").out))
    assert (line["tenant"], line["day"], line["runs"]) == (acme, day, "2")
    tomorrow = str(datetime.now(UTC).date() + timedelta(days=2))
    assert fairlane("usage", "--from", tomorrow, "--to", tomorrow).err.startswith(
        "nothing was used"
    )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--tenant", "nobody"), 1, 'tenant "nobody" is unknown'),
        (("--from", "yesterday"), 2, '"yesterday" is not a day: give one like 2030-01-31'),
        (("--from", "2026-02-02", "--to", "2026-02-01"), 2, "the first one first"),
        (("--csv", "--json"), 2, "give --csv or --json, not both"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    fairlane: Call, words: tuple[str, ...], status: int, said: str
) -> None:
    answer = fairlane("usage", *words)
    assert answer.status == status
    assert said in answer.line


def test_a_queue_keeps_jobs_for_its_own_time_or_its_plans(fairlane: Call, floor: Floor) -> None:
    assert (
        fairlane("queues", "set", "bulk", "--retention-days", "3", "--json").json["retention_days"]
        == 3
    )
    assert "retention_days" in fairlane("queues", "show", "bulk").out
    back = fairlane("queues", "set", "bulk", "--retention-days", "none", "--json")
    assert back.json["retention_days"] is None
    assert fairlane("queues", "set", "bulk", "--retention-days", "4000").status == 2


def test_a_job_whose_retention_is_over_is_not_there(
    fairlane: Call, floor: Floor, acme: str, clock: Clock
) -> None:
    job = str(floor.ended(acme, "a.task"))
    assert fairlane("jobs", "show", job).status == 0
    clock.advance(days=7)
    for verb in ("show", "retry", "cancel", "explain", "logs"):
        answer = fairlane("jobs", verb, job)
        assert answer.status == 1, verb
        assert "its retention is over" in answer.line, verb
