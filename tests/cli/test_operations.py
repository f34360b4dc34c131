"""operations: what bulk commands leave behind, and what a person does about it."""

from typing import Any
from uuid import UUID

import pytest

from cli.calling import Call, Floor


@pytest.fixture
def begun(fairlane: Call, floor: Floor, acme: str) -> Any:
    """Operations that were left to the scheduler, one of each of two tenants."""
    for tenant in (acme, floor.tenant("other")):
        for _ in range(2):
            floor.died(tenant, "a.task")
    answer = fairlane("dead", "ignore", "--all", "--no-wait", "--json")
    assert answer.status == 0
    return answer.json


def test_a_bulk_that_is_not_waited_for_leaves_an_operation_for_each_tenant(
    fairlane: Call, floor: Floor, begun: Any
) -> None:
    assert begun["matched"] == 4
    tenants = {each["tenant"]: each for each in begun["operations"]}
    assert sorted(tenants) == ["acme", "other"]
    assert {each["state"] for each in tenants.values()} == {"running"}
    assert floor.one("select count(*) from fairlane.dead_letter where status = 'pending'") == 4

    listed = fairlane("operations", "list", "--tenant", "acme", "--json").json["items"]
    assert listed == [tenants["acme"]]
    row = fairlane("operations", "list", "--tenant", "acme").out.splitlines()[1]
    assert row.split()[0] == tenants["acme"]["id"]
    assert "ignore" in row
    assert "0 of 2" in row


def test_an_operation_is_stopped_resumed_and_shown(
    fairlane: Call, floor: Floor, begun: Any
) -> None:
    which = begun["operations"][0]["id"]

    assert fairlane("operations", "stop", which).out == "stopped: ignore, 0 of 2\n"
    assert fairlane("operations", "list", "--state", "stopped", "--json").json["items"]
    assert fairlane("operations", "resume", which).out == "running: ignore, 0 of 2\n"
    floor.one("select state from fairlane.step_operation(%s)", UUID(which))
    shown = fairlane("operations", "show", which)
    assert shown.status == 0
    assert "done" in shown.out
    assert fairlane("operations", "resume", which).line.endswith("is done; begin another")


def test_one_that_is_not_there_is_told(fairlane: Call) -> None:
    nobody = "0197b0a4-0c5e-7c3a-9d53-3f0e6a1b2c4d"
    for verb in ("show", "stop", "resume"):
        answer = fairlane("operations", verb, nobody)
        assert answer.status == 1
        assert answer.line == f"operation {nobody} is not there; see: fairlane operations list"


def test_a_bulk_that_is_waited_for_is_an_operation_too(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    floor.died(acme, "a.task")
    assert fairlane("dead", "replay", "--all", "--notes", "deployed").out == "1 replayed\n"

    [kept] = fairlane("operations", "list", "--json").json["items"]
    assert (kept["action"], kept["state"], kept["note"]) == ("replay", "done", "deployed")
    assert kept["created_by"].startswith("cli:")
