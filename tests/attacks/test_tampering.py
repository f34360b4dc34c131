"""No body names a tenant, and none sets what is the server's to say."""

from typing import Any

import pytest

from api.calls import operations, target
from api.world import Caller, World
from attacks.cast import Player
from attacks.tally import tallied
from attacks.tampering import (
    FREE,
    answered,
    answered_by,
    body_of,
    has_body,
    named,
    places,
    taken,
    with_,
)
from support.core import Core

WITH_BODY = [operation for operation in operations() if has_body(operation)]
TENANTS = ("tenant", "tenant_id", "namespace", "org")
# Some of them are read by nobody; others would be worth a lot.
SERVERS = {"role_id", "is_admin", "hash", "forgiven", "worker_id", "lane_id", "share_id"}
BULK = ("POST /jobs/bulk", "POST /dead-letters/bulk")


def caller_of(cast: dict[str, Player], role: str) -> Caller:
    return cast[{"viewer": "admin", "member": "admin"}.get(role, role)].caller


def status_of(answer: Any) -> int:
    """Of a batch, the status of its item."""
    body = answer.json()
    if answer.status_code == 200 and isinstance(body.get("items"), list) and body["items"]:
        return int(body["items"][0].get("status", 200))
    return int(answer.status_code)


async def rows_of(core: Core, tenant: str) -> dict[str, str]:
    """A print of all that a tenant has."""
    (own,) = await core.fetch("select id from fairlane.tenant where slug = $1", tenant)
    tables = await core.fetch(
        "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid "
        "where a.attname = 'tenant_id' and c.relnamespace = 'fairlane'::regnamespace "
        "and c.relkind in ('r', 'p') and not c.relispartition"
    )
    told = "select md5(coalesce(string_agg(t::text, ';' order by t::text), '')) from fairlane.{} t"
    return {
        name: await core.one(told.format(name) + " where tenant_id = $1", own[0])
        for (name,) in tables
    }


async def test_a_tenant_named_in_a_body_is_refused_or_without_effect(
    world: World, cast: dict[str, Player], core: Core
) -> None:
    """At every depth of every body, by slug and by id: second-hop confusion (S2)."""
    await core.enqueue("other", "a.task", payload={"theirs": True})
    await world.died("other", "a.task")
    other_id = str(await core.one("select id from fairlane.tenant where slug = 'other'"))
    before = await rows_of(core, "other")
    with tallied("a tenant in a body") as tally:
        for operation in WITH_BODY:
            about: str | None = None
            for way in places(body_of(operation)):
                for name in TENANTS:
                    about = about or await target(world, operation, "acme")
                    value = other_id if name.endswith("id") else "other"
                    sent = with_(body_of(operation), way, name, value)
                    answer = await caller_of(cast, operation.role).call(
                        operation.method, operation.url(about), json=sent
                    )
                    tally.injected += 1
                    tally.operations += 1
                    status = status_of(answer)
                    about = about if status == 422 else None  # what was done to it counts
                    free = bool(FREE & set(way))
                    # A fence that has no such job yet says so before it reads the rest.
                    good = status == 422 or (free and status in (200, 201, 202, 409))
                    where = "/".join(map(str, way))
                    tally.hold(good, f"{operation}, {name} in /{where}: {status} {answer.text}")
        tally.hold(await rows_of(core, "other") == before, "something of other's has changed")
        moved = await core.one("select count(*) from fairlane.jobs where tenant = 'other'")
        tally.hold(moved == 2, f"other has {moved} jobs")
    assert tally.injected > 150


@pytest.mark.parametrize("of_all", [False, pytest.param(True, marks=pytest.mark.scene)])
async def test_no_field_of_an_answer_can_be_sent(
    world: World, cast: dict[str, Player], of_all: bool
) -> None:
    """Mass assignment (S4): each field of its own answer (of all answers) is refused by name."""
    with tallied("mass assignment") as tally:
        for operation in WITH_BODY:
            if named(operation) in BULK:
                continue
            body = body_of(operation)
            about = await target(world, operation, "acme")
            caller = caller_of(cast, operation.role)
            theirs = answered() if of_all else answered_by(operation)
            for name in sorted((theirs | SERVERS) - taken(operation)):
                sent = with_(body, (), name, "x")
                answer = await caller.call(operation.method, operation.url(about), json=sent)
                tally.injected += 1
                tally.operations += 1
                cell = f"{operation} took {name}: {answer.status_code} {answer.text}"
                tally.hold(answer.status_code == 422 and name in answer.text, cell)
    assert tally.injected > (2000 if of_all else 400)
