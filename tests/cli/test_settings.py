"""tenants, plans, queues: what may be set, what it is then, and what is refused."""

import pytest

from cli.calling import Call, Floor


def test_a_tenant_is_made_and_shown(fairlane: Call) -> None:
    made = fairlane("tenants", "create", "acme", "--plan", "pro", "--name", "Acme", "--json").json

    assert (made["slug"], made["plan"], made["name"]) == ("acme", "pro", "Acme")
    assert (made["max_running"], made["overrides"], made["paused_at"]) == (10, {}, None)
    assert fairlane("tenants", "show", "acme", "--json").json == made
    assert fairlane("tenants", "create", "plain", "--json").json["plan"] == "free"


def test_a_tenants_own_limits_come_before_its_plans(fairlane: Call) -> None:
    words = ("tenants", "create", "acme", "--max-running", "5", "--weight", "2.5", "--json")
    own = {"max_running": 5, "weight": 2.5}
    assert fairlane(*words).json["overrides"] == own

    changed = fairlane(
        *("tenants", "set", "acme", "--max-backlog", "0", "--starts-per-minute", "30"),
        *("--backlog-policy", "reject", "--plan", "starter", "--name", "Acme", "--json"),
    ).json
    assert (changed["max_backlog"], changed["starts_per_minute"]) == (0, 30)
    assert (changed["backlog_policy"], changed["plan"], changed["name"]) == (
        "reject",
        "starter",
        "Acme",
    )

    words = ("tenants", "set", "acme", "--max-running", "none", "--weight", "none", "--json")
    back = fairlane(*words).json
    assert (back["max_running"], back["weight"]) == (3, 1)
    assert back["overrides"] == {
        "max_backlog": 0,
        "starts_per_minute": 30,
        "backlog_policy": "reject",
    }
    shown = fairlane("tenants", "show", "acme").out
    assert "starts_per_minute  30 (its own)" in shown
    assert "max_running        3\n" in shown


def test_a_paused_tenant_says_so_until_it_goes_on(fairlane: Call, acme: str) -> None:
    assert fairlane("tenants", "pause", acme, "--json").json["paused_at"].endswith("Z")
    assert fairlane("tenants", "list").out.splitlines()[1].endswith("paused")
    assert fairlane("tenants", "resume", acme, "--json").json["paused_at"] is None


def test_the_counts_are_right_before_and_after_a_sweep(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    def counts() -> tuple[int, ...]:
        (tenant,) = fairlane("tenants", "list", "--json").json["items"]
        queues = fairlane("queues", "list", "--json").json["items"]
        (queue,) = (queue for queue in queues if queue["name"] == "default")
        names = ("queued", "scheduled", "running")
        assert all(tenant[name] == queue[name] for name in names)
        return tuple(tenant[name] for name in names)

    for _ in range(3):
        job = floor.enqueue(acme, "a.task")
    floor.enqueue(acme, "a.task", scheduled_for="2040-01-01T00:00:00Z")
    assert counts() == (3, 1, 0)

    fairlane("jobs", "cancel", str(job))
    assert counts() == (2, 1, 0)

    worker = floor.worker()
    floor.claim(worker)
    floor.enqueue(acme, "a.task")
    assert counts() == (2, 1, 1)


def test_tenants_are_paged_by_their_slug(fairlane: Call, floor: Floor) -> None:
    for slug in ("c", "a", "b"):
        floor.tenant(slug)

    first = fairlane("tenants", "list", "--limit", "2", "--json").json
    assert [tenant["slug"] for tenant in first["items"]] == ["a", "b"]
    rest = fairlane("tenants", "list", "--cursor", first["next_cursor"], "--json").json
    assert [tenant["slug"] for tenant in rest["items"]] == ["c"]
    assert "there are more: --cursor b" in fairlane("tenants", "list", "--limit", "2").err


def test_a_plan_changes_what_holds_for_its_tenants(fairlane: Call, acme: str) -> None:
    plan = fairlane("plans", "set", "pro", "--max-running", "20", "--weight", "3", "--json").json

    assert (plan["max_running"], plan["weight"], plan["tenants"]) == (20, 3, 1)
    tenant = fairlane("tenants", "show", acme, "--json").json
    assert (tenant["max_running"], tenant["weight"]) == (20, 3)
    unlimited = fairlane("plans", "set", "pro", "--max-running", "none", "--json").json
    assert unlimited["max_running"] is None


def test_a_plan_that_is_new_is_added(fairlane: Call) -> None:
    fairlane("plans", "set", "gold", "--max-running", "50", "--retention-days", "90")

    plans = fairlane("plans", "list", "--json").json["items"]
    assert [plan["name"] for plan in plans] == ["free", "starter", "pro", "gold"]
    assert fairlane("plans", "show", "gold", "--json").json["retention_days"] == 90


def test_a_plan_is_created_once(fairlane: Call) -> None:
    made = fairlane("plans", "create", "gold", "--max-running", "20", "--json").json

    assert (made["name"], made["max_running"], made["tenants"]) == ("gold", 20, 0)
    assert fairlane("plans", "show", "gold", "--json").json == made
    again = fairlane("plans", "create", "gold")
    assert again.status == 1
    assert again.line == ('plan "gold" is there already; change it with: fairlane plans set gold')


def test_one_worker_is_shown_by_its_name_or_id(fairlane: Call, floor: Floor) -> None:
    worker = floor.worker("wk-1", default=4)

    shown = fairlane("workers", "show", "wk-1", "--json").json
    assert (shown["id"], shown["queues"], shown["state"]) == (str(worker), {"default": 4}, "live")
    assert "default=4" in fairlane("workers", "show", str(worker)).out
    unknown = fairlane("workers", "show", "wk-2")
    assert (unknown.status, unknown.line) == (
        1,
        'worker "wk-2" is unknown; see: fairlane workers list --all',
    )


def test_a_queue_is_made_changed_paused_and_resumed(fairlane: Call, floor: Floor) -> None:
    made = fairlane(
        *("queues", "create", "video", "--slots", "3", "--timeout-seconds", "900"),
        *("--retry-delays", "5,50", "--apart-from-plan", "--max-running-per-tenant", "2", "--json"),
    ).json
    assert (made["slots"], made["timeout_seconds"], made["retry_delays"]) == (3, 900, [5, 50])
    assert (made["counts_against_plan"], made["max_running_per_tenant"]) == (False, 2)

    changed = fairlane(
        "queues",
        "set",
        "video",
        "--max-running-per-tenant",
        "none",
        "--max-attempts",
        "7",
        "--json",
    ).json
    assert (changed["max_running_per_tenant"], changed["max_attempts"]) == (None, 7)
    assert (changed["slots"], changed["counts_against_plan"]) == (3, False)

    assert fairlane("queues", "pause", "video", "--json").json["paused_at"] is not None
    assert fairlane("queues", "resume", "video", "--json").json["paused_at"] is None
    assert fairlane("queues", "show", "video").out.startswith("name ")


def test_queues_show_the_live_workers_that_serve_them(fairlane: Call, floor: Floor) -> None:
    floor.worker("w1", default=4, bulk=1)
    floor.worker("w2", default=3)
    floor.worker("gone", lease=0.000001, default=50)

    queues = {queue["name"]: queue for queue in fairlane("queues", "list", "--json").json["items"]}

    assert (queues["default"]["workers"], queues["default"]["worker_slots"]) == (2, 7)
    assert (queues["bulk"]["workers"], queues["bulk"]["worker_slots"]) == (1, 1)
    assert (queues["critical"]["workers"], queues["critical"]["worker_slots"]) == (0, 0)


def test_workers_are_listed_while_they_are_about(fairlane: Call, floor: Floor, acme: str) -> None:
    busy = floor.worker("busy", default=4)
    floor.worker("dying", lease=0.000001)
    floor.one("select fairlane.stop_worker(%s)", floor.worker("stopped"))
    floor.enqueue(acme, "a.task")
    floor.claim(busy)

    workers = fairlane("workers", "list", "--json").json["items"]
    assert [(w["name"], w["state"], w["running"]) for w in workers] == [
        ("dying", "lost", 0),
        ("busy", "live", 1),
    ]
    assert workers[1]["queues"] == {"default": 4}
    everyone = fairlane("workers", "list", "--all", "--json").json["items"]
    assert "stopped" in [worker["name"] for worker in everyone]
    assert "default=4" in fairlane("workers", "list").out


def test_definitions_are_shown_as_they_are_written(fairlane: Call, floor: Floor) -> None:
    command = {"argv": ["sync", "--tenant", "{tenant.id}"], "success_codes": [0]}
    floor.define("sync", executor="command", settings=command, description="Sync")
    floor.define("sync", executor="command", settings=command, version="2", is_active=False)
    floor.define("plain", queue="bulk", retry_delays=[1, 2])

    shown = fairlane("definitions", "show", "sync", "--json").json
    assert (shown["key"], shown["version"], shown["command"]) == ("sync", "1", command)
    assert "settings" not in shown
    assert fairlane("definitions", "show", "sync", "--version", "2", "--json").json[
        "is_active"
    ] is (False)
    listed = fairlane("definitions", "list", "--json").json["items"]
    assert [(d["key"], d["version"]) for d in listed] == [("plain", "1"), ("sync", "1")]
    assert listed[0]["retry_delays"] == [1, 2]
    assert len(fairlane("definitions", "list", "--all", "--json").json["items"]) == 3
    assert "bulk" in fairlane("definitions", "list").out


@pytest.mark.parametrize("what", ["jobs", "dead", "tenants", "workers", "definitions"])
def test_an_empty_list_is_said_to_be_empty(fairlane: Call, what: str) -> None:
    answer = fairlane(what, "list")

    assert (answer.status, answer.out) == (0, "")
    assert answer.err.startswith("no ")
    assert fairlane(what, "list", "--json").json == {"items": [], "next_cursor": None}


def test_a_worker_is_drained_and_once_gone_forgotten(fairlane: Call, floor: Floor) -> None:
    worker = floor.worker("wk-1", default=4)
    refused = fairlane("workers", "forget", "wk-1")
    assert refused.line == "worker wk-1 lives; drain it first, and forget it once it has stopped"

    assert fairlane("workers", "drain", "wk-1", "--json").json["state"] == "draining"
    assert fairlane("workers", "drain", str(worker)).out.startswith("asked wk-1 to end")
    floor.one("select fairlane.stop_worker(%s)", worker)
    assert fairlane("workers", "drain", "wk-1").line.startswith("worker wk-1 is stopped")
    assert fairlane("workers", "forget", "wk-1").out == "forgot wk-1\n"
    assert fairlane("workers", "list", "--all", "--json").json["items"] == []


def test_of_two_workers_by_one_name_the_id_says_which(fairlane: Call, floor: Floor) -> None:
    ids = [floor.worker("wk-1") for _ in range(2)]
    assert fairlane("workers", "drain", "wk-1").line.startswith('2 workers are named "wk-1"')
    assert fairlane("workers", "drain", str(ids[0])).status == 0
