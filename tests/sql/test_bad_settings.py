"""What people set is checked: what is wrong is refused in one line, and nothing is written."""

import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.errors import PlanNotFound, QueueNotFound, TenantExists, TenantNotFound, ValueRefused
from support.cluster import Cluster
from support.core import Core

SETTINGS = ("plan", "tenant", "queue", "definition", "doorbell", "audit", "gate", "share", "lane")

LIMITS: list[Any] = [-1, 1.5, "many", True, [1], {"a": 1}, 99_999_999_999]
RATES: list[Any] = [0, *LIMITS]
WEIGHTS: list[Any] = [0, -1, 1001, "heavy", "NaN", "Infinity", [1]]
DELAYS: list[Any] = [[-1], ["soon"], 60, {"a": 1}, [None], [[60]], [1.5]]

PLANS: list[dict[str, Any]] = [
    *({"max_running": value} for value in LIMITS),
    *({"starts_per_minute": value} for value in RATES),
    *({"max_backlog": value} for value in LIMITS),
    *({"weight": value} for value in [*WEIGHTS, None]),
    *({"retention_days": value} for value in [0, -1, 3651, None, "week"]),
    *({"backlog_policy": value} for value in ["maybe", None, 1]),
    {"colour": "red"},
    {"name": "other"},
    {"max_running": 5, "colour": "red"},
]
TENANTS: list[dict[str, Any]] = [
    *({"max_running": value} for value in LIMITS),
    *({"starts_per_minute": value} for value in RATES),
    *({"max_backlog": value} for value in LIMITS),
    *({"weight": value} for value in WEIGHTS),
    *({"backlog_policy": value} for value in ["maybe", 1]),
    {"name": None},
    {"slug": "other"},
    {"paused_at": "2020-01-01"},
    {"max_running": 5, "colour": "red"},
]
QUEUES: list[dict[str, Any]] = [
    *({"slots": value} for value in [*RATES, None]),
    *({"timeout_seconds": value} for value in [*RATES, None]),
    *({"max_attempts": value} for value in [*RATES, None]),
    *({"retry_delays": value} for value in [*DELAYS, None]),
    *({"max_running_per_tenant": value} for value in LIMITS),
    *({"starts_per_minute_per_tenant": value} for value in RATES),
    *({"max_backlog_per_tenant": value} for value in LIMITS),
    *({"counts_against_plan": value} for value in ["perhaps", None, [1]]),
    *({"position": value} for value in ["first", None, 1.5]),
    {"colour": "red"},
]
DEFINITIONS: list[dict[str, Any]] = [
    *({"max_running": value} for value in LIMITS),
    *({"max_running_per_tenant": value} for value in LIMITS),
    *({"starts_per_minute": value} for value in RATES),
    *({"timeout_seconds": value} for value in RATES),
    *({"max_attempts": value} for value in RATES),
    *({"retry_delays": value} for value in DELAYS),
    *({"key": value} for value in [None, "", "a b", "-x", "k" * 200, 'a"b', "a\nb"]),
    *({"version": value} for value in ["", "one two", "v" * 64]),
    *({"executor": value} for value in ["shell", 1]),
    *({"settings": value} for value in [[], "x", 1]),
    *({"arg_schema": value} for value in [[], "x", 1]),
    *({"is_active": value} for value in ["perhaps", [1]]),
    *({"dead_letter": value} for value in ["perhaps", [1]]),
    *({"redact": value} for value in ["/token", {"a": 1}]),
    {"has_limits": True},
    {"id": "00000000-0000-0000-0000-000000000000"},
    {"colour": "red"},
]


def shown(value: Any) -> str:
    return json.dumps(value)[:60]


async def everything(core: Core) -> list[Any]:
    return await core.fetch(
        " union all ".join(
            f"select '{table}', t::text from fairlane.{table} t" for table in SETTINGS
        )
        + " order by 1, 2"
    )


async def refused(core: Core, call: Call, error: type[Exception] = ValueRefused) -> str:
    """The call is refused with this error, in one line, and leaves everything as it was."""
    before = await everything(core)
    with pytest.raises(error) as caught:
        await core.send(call)
    assert type(caught.value) is error
    message = str(caught.value)
    assert "\n" not in message
    assert await everything(core) == before
    return message


@pytest.fixture(scope="module")
async def stage(cluster: Cluster, template: str) -> AsyncIterator[Core]:
    """One database for all: nothing here ever writes to it."""
    with cluster.fresh(template) as url:
        conn = await asyncpg.connect(url)
        core = Core(conn)
        await core.a_definition("kind", max_running=3)
        await core.enqueue(await core.a_tenant("acme"), "kind")
        await core.sweep()
        yield core
        await conn.close()


@pytest.mark.parametrize("plan", ["pro", "new"])
@pytest.mark.parametrize("changes", PLANS, ids=shown)
async def test_a_plan_that_cannot_be_is_refused(
    stage: Core, plan: str, changes: dict[str, Any]
) -> None:
    assert [*changes][-1] in await refused(stage, calls.set_plan(plan, changes))


@pytest.mark.parametrize("changes", TENANTS, ids=shown)
async def test_a_tenant_that_cannot_be_is_refused(stage: Core, changes: dict[str, Any]) -> None:
    assert [*changes][-1] in await refused(stage, calls.set_tenant("acme", changes))
    assert [*changes][-1] in await refused(stage, calls.create_tenant("new", "pro", "", changes))


@pytest.mark.parametrize("queue", ["default", "new"])
@pytest.mark.parametrize("changes", QUEUES, ids=shown)
async def test_a_queue_that_cannot_be_is_refused(
    stage: Core, queue: str, changes: dict[str, Any]
) -> None:
    assert [*changes][-1] in await refused(stage, calls.set_queue(queue, changes))


@pytest.mark.parametrize("key", ["kind", "new"])
@pytest.mark.parametrize("fields", DEFINITIONS, ids=shown)
async def test_a_definition_that_cannot_be_is_refused_with_all_that_came_along(
    stage: Core, key: str, fields: dict[str, Any]
) -> None:
    wrong = {"key": key, "max_running": 2} | fields
    assert [*fields][-1] in await refused(stage, calls.define([{"key": "good"}, wrong]))


@pytest.mark.parametrize("name", ["", "Pro", "a b", "-x", "x" * 64, "a\nb", 'a"b', "größe"])
async def test_a_name_that_cannot_be_is_refused(stage: Core, name: str) -> None:
    await refused(stage, calls.set_plan(name, {}))
    await refused(stage, calls.set_queue(name, {}))
    await refused(stage, calls.create_tenant(name, "pro", "", {}))


@pytest.mark.parametrize("document", ["[1]", '"x"', "7", "null"])
async def test_what_is_no_object_is_refused(stage: Core, document: str) -> None:
    for call in (
        Call("select fairlane.set_plan('pro', $1::text::jsonb)", (document,)),
        Call("select fairlane.set_tenant('acme', $1::text::jsonb)", (document,)),
        Call("select fairlane.set_queue('default', $1::text::jsonb)", (document,)),
        Call("select fairlane.create_tenant('new', changes => $1::text::jsonb)", (document,)),
        Call("select fairlane.define(jsonb_build_array($1::text::jsonb))", (document,)),
        Call("select fairlane.define($1::text::jsonb -> 'nowhere')", (document,)),
        Call("select fairlane.define($1::text::jsonb)", (document,)),
    ):
        await refused(stage, call)


async def test_what_is_not_there_is_named(stage: Core) -> None:
    """Also what does not fit on a line."""
    for name in ("nobody", "no\nbody"):
        await refused(stage, calls.set_tenant(name, {}), TenantNotFound)
        await refused(stage, calls.pause_tenant(name), TenantNotFound)
        await refused(stage, calls.resume_queue(name), QueueNotFound)
        await refused(stage, calls.create_tenant("new", name, "", {}), PlanNotFound)
        await refused(stage, calls.set_tenant("acme", {"plan": name}), PlanNotFound)
        await refused(stage, calls.define([{"key": "kind", "queue": name}]), QueueNotFound)
    await refused(stage, calls.create_tenant("acme", "pro", "", {}), TenantExists)


async def test_a_limit_that_is_null_is_none(stage: Core) -> None:
    async with stage.conn.transaction():
        await stage.limit_plan("open", max_running=None, max_backlog=None, starts_per_minute=None)
        await stage.limit_tenant("acme", max_running=0, weight=1000)
        await stage.limit_queue("default", retry_delays=[], max_running_per_tenant=0)
        row = (await stage.fetch("select * from fairlane.plan where name = 'open'"))[0]
        assert (row["max_running"], row["weight"], row["backlog_policy"]) == (None, 1, "warn")
