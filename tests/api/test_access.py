"""Role by call by whose: made from the OpenAPI document, so that a call without a rule fails."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.calls import ROLES, UNKNOWN, Operation, document, operations, target
from api.world import Caller, World, world_of
from fairlane.api.limits import Limits
from support.core import Core

OPERATIONS = list(operations())
NO_STREAMS = Limits(rate=0, streams=0)  # a stream that would be let in is refused as one too many


@pytest.fixture
async def world(database: str, core: Core) -> AsyncIterator[World]:
    for slug in ("acme", "other"):
        await core.a_tenant(slug)
    await core.a_definition("a.task")
    async with world_of(database, core, NO_STREAMS) as found:
        found.worker = await found.caller("worker")
        yield found


@pytest.fixture
async def callers(world: World) -> dict[str, Caller]:
    """One of each role, of acme where the role belongs to a tenant."""
    inside = {role: await world.caller(role, "acme") for role in ("viewer", "member", "admin")}
    return {**inside, "operator": await world.caller("operator"), "worker": world.worker}


async def call(caller: Caller, operation: Operation, about: str | None) -> Any:
    body = operation.body
    options = {} if body is None else {"json": body}
    return await caller.call(operation.method, operation.url(about), **options)


def test_every_call_has_a_rule_and_says_what_it_answers() -> None:
    assert len(OPERATIONS) > 50
    for operation in OPERATIONS:
        said = operation.document
        assert operation.role in ROLES
        assert said["security"] == [{"bearer": []}]
        assert said["summary"], operation
        assert {"401", "403", "422", "429"} <= set(said["responses"]), operation
        assert any(status.startswith("2") for status in said["responses"])


async def test_nobody_comes_in_without_a_good_token(world: World) -> None:
    made = await world.caller("viewer", "acme")
    assert made.token is not None
    strangers = [
        world.stranger(),
        world.stranger("x"),
        world.stranger(made.token[:-1] + ("a" if made.token[-1] != "a" else "b")),
        world.stranger(made.token.upper()),
    ]
    for operation in OPERATIONS:
        for stranger in strangers:
            answer = await call(stranger, operation, UNKNOWN)
            assert answer.status_code == 401, operation
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_role_that_is_too_low_is_refused_everywhere(callers: dict[str, Caller]) -> None:
    for operation in OPERATIONS:
        for role in set(ROLES) - operation.allowed:
            answer = await call(callers[role], operation, UNKNOWN)
            assert answer.status_code == 403, f"{role} {operation}"


async def test_whoever_may_is_let_in_to_what_is_its_own(
    world: World, callers: dict[str, Caller]
) -> None:
    for operation in OPERATIONS:
        for role in operation.allowed:
            caller = callers[role]
            if role == "operator":
                named = operation.of_tenant or operation.path.endswith("/tokens")
                caller = caller.acting_for("acme") if named else caller
                if operation.role == "worker":
                    continue  # a job is the token's that claimed it
            about = await target(world, operation, "acme")
            answer = await call(caller, operation, about)
            streamed = "text/event-stream" in str(operation.document["responses"].get("200"))
            expected = {429} if streamed else {200, 201, 202}
            assert answer.status_code in expected, f"{role} {operation}: {answer.text}"


async def test_what_is_anothers_looks_as_if_it_were_not_there(
    world: World, callers: dict[str, Caller]
) -> None:
    for operation in OPERATIONS:
        if "{" not in operation.path or operation.role in ("operator",):
            continue
        for role in operation.allowed - {"operator"}:
            unknown_id = "Zz345678" if "token" in operation.path else UNKNOWN
            theirs = await target(world, operation, "other") if role != "worker" else UNKNOWN
            other = await call(callers[role], operation, theirs)
            unknown = await call(callers[role], operation, unknown_id)
            assert other.status_code == unknown.status_code, f"{role} {operation}"
            assert other.status_code == (409 if role == "worker" else 404), f"{role} {operation}"
            assert _without(other.json(), theirs) == _without(unknown.json(), unknown_id)
            malformed = await call(callers[role], operation, "no-such-id")
            assert malformed.status_code in (404, 422), f"{role} {operation}"


def _without(problem: dict[str, Any], named: str | None) -> str:
    return str(problem).replace(str(named), "ID")


async def test_a_tenants_token_never_chooses_another_tenant(
    callers: dict[str, Caller],
) -> None:
    for operation in OPERATIONS:
        if not operation.of_tenant:
            continue
        for tenant in ("other", "no-such"):
            caller = callers["admin"].acting_for(tenant)
            answer = await call(caller, operation, UNKNOWN)
            assert answer.status_code == 403, operation


async def test_no_body_takes_a_tenant() -> None:
    """But those by which an operator makes one."""
    schemas = document()["components"]["schemas"]
    for name, schema in schemas.items():
        if name.endswith("In") or name in ("JobBody", "TenantChanges"):
            for field in schema.get("properties", {}):
                assert "tenant" not in field or field.endswith("_per_tenant"), f"{name}.{field}"


async def test_canaries_of_one_tenant_are_nowhere_in_what_another_fetches(
    world: World, callers: dict[str, Caller], core: Core
) -> None:
    canary = "canary-5f3a"
    job = await core.enqueue(
        "other",
        "a.task",
        payload={"text": canary},
        dedupe_key=canary,
        concurrency_key=f"{canary}-k",
        correlation_id=canary,
        created_by=canary,
        source_ref=canary,
    )
    await world.died("other", "a.task", payload={"text": canary}, correlation_id=canary)
    await world.ended("other", "a.task", {"text": canary}, payload={"text": canary})
    await core.cancel(job, reason=canary)
    await core.enqueue("other", "a.task", payload={"text": canary}, dedupe_key=canary)
    await core.limit_tenant("other", name=canary)

    seen = 0
    for operation in OPERATIONS:
        if operation.method != "GET" or "{" in operation.path:
            continue
        for role in operation.allowed - {"operator", "worker"}:
            caller = callers[role]
            for query in ("", f"?q={canary}", f"?correlation_id={canary}", "?status=all"):
                answer = await caller.call("GET", operation.url(None) + query)
                assert canary not in answer.text.replace(query, ""), f"{role} {operation}"
                seen += answer.status_code == 200
    assert seen > 20
    body = {"definition_key": "a.task", "dedupe_key": canary}
    made = await callers["member"].post("/jobs", body)
    assert made.status_code == 202, "another tenant's dedupe key is no twin"
