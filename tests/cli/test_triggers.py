"""`fairlane triggers` and `fairlane events`: made, changed, previewed, applied from files."""

from pathlib import Path

import pytest

from cli.calling import Call, Floor

FILE = """
triggers:
  - tenant: acme
    label: Nightly
    trigger_type: schedule
    cron_expr: 0 2 * * *
    timezone: America/New_York
    definition_key: a.task
    payload_template: {at: "{{schedule.time}}"}
    missed: all
    overlap: skip
  - tenant: acme
    label: On change
    trigger_type: event
    event_name: provider.*
    filter: {size: {gte: 3}}
    definition_key: a.task
    is_enabled: false
"""


def make(fairlane: Call, *more: str) -> str:
    words = ("--tenant", "acme", "--cron", "30 2 * * *", "--definition", "a.task", *more)
    answer = fairlane("triggers", "create", *words, "--json")
    assert answer.status == 0, answer.err
    return str(answer.json["id"])


def test_a_schedule_is_made_shown_and_listed(fairlane: Call, acme: str) -> None:
    which = make(fairlane, "--timezone", "America/New_York", "--label", "Nightly")
    shown = fairlane("triggers", "show", which, "--json").json
    assert (shown["label"], shown["timezone"], shown["tenant"]) == (
        "Nightly",
        "America/New_York",
        "acme",
    )
    listed = fairlane("triggers", "list", "--tenant", "acme", "--json").json
    assert [each["id"] for each in listed["items"]] == [which]
    assert "Nightly" in fairlane("triggers", "list").out
    assert "System: what is past its retention" in fairlane("triggers", "list").out


def test_a_preview_tells_both_times(fairlane: Call, acme: str) -> None:
    which = make(fairlane, "--timezone", "America/New_York")
    answer = fairlane(
        "triggers", "preview", which, "--count", "2", "--after", "2026-03-08T00:00:00Z"
    )
    assert answer.out.splitlines() == [
        "2026-03-08 07:00 UTC   Sun 2026-03-08 03:00 EDT",
        "2026-03-09 06:30 UTC   Mon 2026-03-09 02:30 EDT",
    ]
    words = ("--count", "1", "--after", "2026-03-08T00:00:00Z", "--json")
    found = fairlane("triggers", "preview", which, *words).json
    assert found == {"times": ["2026-03-08T07:00:00Z"]}


def test_a_trigger_is_changed_paused_fired_and_deleted(fairlane: Call, acme: str) -> None:
    which = make(fairlane)
    assert fairlane("triggers", "set", which, "--cron", "@daily", "--json").json["cron_expr"] == (
        "@daily"
    )
    assert fairlane("triggers", "pause", which, "--json").json["is_enabled"] is False
    assert fairlane("triggers", "resume", which, "--json").json["is_enabled"] is True
    fired = fairlane("triggers", "fire", which, "--json").json
    assert (fired["definition_key"], fired["source"]) == ("a.task", "manual")
    came = fairlane("triggers", "deliveries", which, "--json").json["items"]
    assert [each["job_id"] for each in came] == [fired["id"]]
    assert fairlane("triggers", "delete", which).status == 0
    gone = fairlane("triggers", "show", which)
    assert (gone.status, gone.out) == (1, "")
    assert len(gone.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--cron", "0 0 31 2 *", "--definition", "a.task"), 1, "never comes"),
        (("--cron", "@daily", "--timezone", "Mars", "--definition", "a.task"), 1, "no time zone"),
        (("--cron", "@daily", "--definition", "none"), 1, "no definition"),
        (("--cron", "@daily"), 2, "--definition"),
        (("--definition", "a.task"), 2, "--event NAME or --cron"),
        (("--cron", "@daily", "--event", "x", "--definition", "a.task"), 2, "--event NAME or"),
        (("--event", "a b", "--definition", "a.task"), 1, "/event_name"),
        (("--event", "a", "--definition", "a.task", "--payload", "[1]"), 2, "JSON object"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(
    fairlane: Call, acme: str, words: tuple[str, ...], status: int, said: str
) -> None:
    answer = fairlane("triggers", "create", "--tenant", "acme", *words)
    assert (answer.status, answer.out) == (status, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


def test_a_file_is_applied_all_or_none_and_again_changes_nothing(
    fairlane: Call, acme: str, anywhere: Path
) -> None:
    path = anywhere / "triggers.yaml"
    path.write_text(FILE)
    plan = fairlane("triggers", "apply", str(path), "--dry-run")
    assert "2 created, 0 changed, 0 same" in plan.out
    assert fairlane("triggers", "list", "--tenant", "acme", "--json").json["items"] == []

    done = fairlane("triggers", "apply", str(path), "--json").json
    assert [each["change"] for each in done["items"]] == ["created", "created"]
    nightly = done["items"][0]
    assert (nightly["missed"], nightly["overlap"]) == ("all", "skip")
    again = fairlane("triggers", "apply", str(path), "--json").json
    assert [each["change"] for each in again["items"]] == ["same", "same"]

    path.write_text(FILE.replace("0 2 * * *", "0 4 * * *"))
    changed = fairlane("triggers", "apply", str(path))
    assert "/cron_expr: 0 2 * * * → 0 4 * * *" in changed.out
    shown = fairlane("triggers", "show", nightly["id"], "--json").json
    assert shown["cron_expr"] == "0 4 * * *"

    path.write_text(FILE.replace("0 2 * * *", "0 5 * * *").replace("provider.*", "provider. x"))
    bad = fairlane("triggers", "apply", str(path))
    assert bad.status == 1
    assert "triggers.yaml, line 15: /triggers/1/event_name" in bad.err
    assert fairlane("triggers", "show", nightly["id"], "--json").json["cron_expr"] == "0 4 * * *"


def test_a_file_names_its_tenants_and_they_are_there(
    fairlane: Call, acme: str, anywhere: Path
) -> None:
    path = anywhere / "t.yaml"
    path.write_text(FILE.replace("- tenant: acme\n    label: On", "- label: On"))
    assert "/triggers/1/tenant" in fairlane("triggers", "apply", str(path)).err
    path.write_text(FILE.replace("tenant: acme\n    label: On", "tenant: nobody\n    label: On"))
    assert 'there is no tenant "nobody"' in fairlane("triggers", "apply", str(path)).err
    path.write_text(FILE.replace("On change", "Nightly"))
    assert "/triggers/1/label" in fairlane("triggers", "apply", str(path)).err
    assert fairlane("triggers", "apply", str(anywhere / "none.yaml")).status == 2


def test_a_chore_of_the_house_can_be_paused_and_not_deleted(
    fairlane: Call, acme: str, floor: Floor
) -> None:
    items = fairlane("triggers", "list", "--json").json["items"]
    chore = next(each["id"] for each in items if each.get("chore") == "retention")
    assert fairlane("triggers", "pause", chore).status == 0
    assert fairlane("triggers", "set", chore, "--cron", "0 3 * * *").status == 0
    assert fairlane("triggers", "set", chore, "--definition", "a.task").status == 1
    refused = fairlane("triggers", "delete", chore)
    assert refused.status == 1
    assert "stays" in refused.err


def test_an_event_is_emitted_listed_and_shown(fairlane: Call, acme: str) -> None:
    words = ("--tenant", "acme", "--data", '{"n": 1}')
    assert fairlane("events", "emit", "a.b", *words, "--id", "e-1").out == "e-1\n"
    assert fairlane("events", "emit", "a.b", *words, "--id", "e-1", "--json").json["id"] == "e-1"
    items = fairlane("events", "list", "--tenant", "acme", "--json").json["items"]
    assert [(each["id"], each["status"]) for each in items] == [("e-1", "pending")]
    shown = fairlane("events", "show", "e-1", "--tenant", "acme", "--json").json
    assert (shown["data"], shown["deliveries"]) == ({"n": 1}, [])
    assert fairlane("events", "show", "none", "--tenant", "acme").status == 1
    assert fairlane("events", "emit", "a b", "--tenant", "acme").status == 1
    assert fairlane("events", "list", "--cursor", "x").status == 2


def test_an_event_is_sent_again_and_a_trigger_is_tested(fairlane: Call, acme: str) -> None:
    words = ("--tenant", "acme", "--event", "told", "--definition", "a.task")
    made = fairlane("triggers", "create", *words, "--filter", '{"n": 1}', "--json").json
    fairlane("events", "emit", "told", "--tenant", "acme", "--id", "one", "--data", '{"n": 1}')
    fairlane("events", "emit", "told", "--tenant", "acme", "--id", "two", "--data", '{"n": 2}')
    tried = fairlane("triggers", "test", made["id"], "--json").json
    assert [(each["event_id"], each["matches"]) for each in tried["items"]] == [
        ("two", False),
        ("one", True),
    ]
    assert "n is 2, which does not fit eq 1" in fairlane("triggers", "test", made["id"]).out

    resend = ("events", "resend", "one", "--tenant", "acme", "--id", "again")
    assert fairlane(*resend).out.strip() == "again"
    assert fairlane(*resend, "--json").json["resend_of"] == "one"
    assert "again" in fairlane("events", "show", "one", "--tenant", "acme").out
    answer = fairlane("events", "resend", "no-such", "--tenant", "acme")
    assert (answer.status, answer.err.count("\n")) == (1, 1)
    assert 'has no event "no-such"' in answer.err
