"""dead: what waits for a person, one at a time or all that fit."""

from uuid import UUID

import pytest

from cli.calling import Answer, Call, Floor
from fairlane.ids import short_id


def ids(answer: Answer) -> list[str]:
    return [letter["id"] for letter in answer.json["items"]]


def test_the_list_shows_what_waits_and_with_a_word_also_the_rest(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    first, second = floor.died(acme, "a.task", "no paper"), floor.died(acme, "a.task")
    fairlane("dead", "ignore", str(first), "--notes", "old")

    assert ids(fairlane("dead", "list", "--json")) == [str(second)]
    assert ids(fairlane("dead", "list", "--status", "ignored", "--json")) == [str(first)]
    assert ids(fairlane("dead", "list", "--status", "all", "--json")) == [str(second), str(first)]
    row = fairlane("dead", "list", "--status", "ignored").out.splitlines()[1]
    assert row.split()[:5] == [short_id(first), "ignored", "acme", "a.task", "attempts"]
    assert row.endswith("no paper")


def test_the_list_can_be_narrowed_and_paged(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.define("b.task")
    mine = [floor.died(acme, "a.task"), floor.died(acme, "a.task"), floor.died(acme, "b.task")]
    floor.died(floor.tenant("other"), "a.task")

    answer = fairlane("dead", "list", "--tenant", acme, "--definition", "a.task", "--json")
    assert ids(answer) == [str(mine[1]), str(mine[0])]
    first = fairlane("dead", "list", "--tenant", acme, "--limit", "2", "--json")
    cursor = first.json["next_cursor"]
    rest = fairlane("dead", "list", "--tenant", acme, "--cursor", cursor, "--json")
    assert ids(first) + ids(rest) == [str(job) for job in reversed(mine)]
    assert rest.json["next_cursor"] is None


def test_one_dead_letter_is_shown_with_its_error(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.define("login", redact=["/token"])
    job = floor.died(acme, "login", "no paper", payload={"token": "s3cret", "user": "ada"})

    letter = fairlane("dead", "show", short_id(job), "--json").json

    assert (letter["id"], letter["short_id"]) == (str(job), short_id(job))
    assert (letter["status"], letter["reason"], letter["attempt_count"]) == (
        "pending",
        "attempts",
        1,
    )
    assert letter["last_error"]["message"] == "no paper"
    assert letter["payload"] == {"token": "[redacted]", "user": "ada"}
    assert "s3cret" not in fairlane("dead", "show", str(job)).out


def test_a_replay_puts_the_same_job_back(fairlane: Call, floor: Floor, acme: str) -> None:
    job = str(floor.died(acme, "a.task", payload={"n": 1}))

    answer = fairlane("dead", "replay", job, "--notes", "fixed", "--payload", '{"n": 2}')

    assert (answer.status, answer.out) == (0, "replayed\n")
    live = fairlane("jobs", "show", job, "--json").json
    assert (live["status"], live["payload"], live["replays"]) == ("queued", {"n": 2}, 1)
    letter = fairlane("dead", "show", job, "--json").json
    assert (letter["status"], letter["notes"]) == ("retried", "fixed")
    again = fairlane("dead", "replay", job)
    assert again.status == 1
    assert "is queued; to replay it must be a pending dead letter" in again.line


@pytest.mark.parametrize(("verb", "status"), [("resolve", "resolved"), ("ignore", "ignored")])
def test_a_settled_dead_letter_says_who_did_it(
    fairlane: Call, floor: Floor, acme: str, verb: str, status: str
) -> None:
    job = str(floor.died(acme, "a.task"))

    letter = fairlane("dead", verb, job, "--notes", "by hand", "--json").json

    assert (letter["status"], letter["notes"]) == (status, "by hand")
    assert letter["settled_by"].startswith("cli:")
    assert fairlane("dead", verb, job).line == f"the dead letter {job} is {status} already"


# All that fit ---------------------------------------------------------------


@pytest.fixture
def many(floor: Floor, acme: str) -> dict[str, list[UUID]]:
    floor.define("b.task")
    floor.tenant("other")
    return {
        "mine": [floor.died(acme, "a.task") for _ in range(3)],
        "another kind": [floor.died(acme, "b.task")],
        "another's": [floor.died("other", "a.task")],
    }


FILTER = ("--all", "--tenant", "acme", "--definition", "a.task")


def test_a_preview_changes_nothing(
    fairlane: Call, floor: Floor, many: dict[str, list[UUID]]
) -> None:
    shown = fairlane("dead", "replay", *FILTER, "--dry-run")
    assert shown.status == 0
    assert [line.split() for line in shown.out.splitlines()] == [
        ["TENANT", "DEFINITION", "DEAD", "LETTERS"],
        ["acme", "a.task", "3"],
    ]
    assert shown.err == "3 would be replayed\n"

    as_json = fairlane("dead", "replay", "--all", "--dry-run", "--json").json
    assert (as_json["matched"], as_json["dry_run"]) == (5, True)
    assert len(as_json["groups"]) == 3
    assert floor.one("select count(*) from fairlane.dead_letter where status = 'pending'") == 5


def test_a_verb_reaches_all_that_fit_and_no_other(
    fairlane: Call, floor: Floor, many: dict[str, list[UUID]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # More than one step.
    monkeypatch.setattr("fairlane.cli.bulk.STEP", 2)

    answer = fairlane("dead", "replay", *FILTER, "--notes", "deployed")

    assert (answer.status, answer.out) == (0, "3 replayed\n")
    live = floor.fetch("select id from fairlane.job where status = 'queued'")
    assert sorted(live) == sorted((job,) for job in many["mine"])
    assert fairlane("dead", "resolve", "--all", "--json").json == {
        "matched": 2,
        "dry_run": False,
        "done": 2,
        "refused": [],
    }


def test_one_that_is_refused_holds_up_no_other(fairlane: Call, floor: Floor, acme: str) -> None:
    clash = floor.died(acme, "a.task", dedupe_key="nightly")
    free = floor.died(acme, "a.task")
    floor.enqueue(acme, "a.task", dedupe_key="nightly")

    answer = fairlane("dead", "replay", "--all", "--json")

    assert answer.status == 1
    assert (answer.json["matched"], answer.json["done"]) == (2, 1)
    (refused,) = answer.json["refused"]
    assert refused["id"] == str(clash)
    assert "another live job has its dedupe key" in refused["detail"]
    assert floor.one("select status from fairlane.job where id = %s", free) == "queued"


def test_a_person_is_asked_before_all_are_touched(
    fairlane: Call, floor: Floor, many: dict[str, list[UUID]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.cli.bulk.at_terminal", lambda: True)

    refused = fairlane("dead", "ignore", "--all", stdin=b"n\n")
    assert refused.status == 130
    assert "5 would be ignored" in refused.err
    assert floor.one("select count(*) from fairlane.dead_letter where status = 'pending'") == 5

    assert fairlane("dead", "ignore", "--all", stdin=b"y\n").out.endswith("5 ignored\n")


def test_one_or_all_but_not_both(fairlane: Call, floor: Floor, acme: str) -> None:
    job = str(floor.died(acme, "a.task"))

    assert fairlane("dead", "ignore", job, "--all").status == 2
    assert fairlane("dead", "ignore", job, "--tenant", acme).status == 2
    assert fairlane("dead", "ignore", job, "--dry-run").status == 2
    assert floor.one("select status from fairlane.dead_letter") == "pending"


def test_a_dead_letter_is_assigned_listed_by_whom_and_reopened(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    first, second = floor.died(acme, "a.task"), floor.died(acme, "a.task")
    assert fairlane("dead", "assign", str(first), "ada").out == "assigned to ada\n"
    assert ids(fairlane("dead", "list", "--assignee", "ada", "--json")) == [str(first)]
    assert ids(fairlane("dead", "list", "--assignee", "", "--json")) == [str(second)]
    assert fairlane("dead", "assign", str(first), "--nobody", "--json").json["assignee"] is None
    assert fairlane("dead", "assign", str(first)).status == 2

    fairlane("dead", "resolve", str(first))
    assert fairlane("dead", "reopen", str(first)).out == "pending again\n"
    assert fairlane("dead", "reopen", str(first)).status == 1
