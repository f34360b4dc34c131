"""Two tenants with a canary in everything they have, and whoever may look."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from fairlane.access import tokens
from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.core import calls
from fairlane.ids import uuid7
from fairlane.scheduler import asking, store
from fairlane.scheduler.dispatcher import Dispatcher
from support.core import Core

TENANTS = ("acme", "globex")
# No part of one is in the other.
CANARIES = {"acme": "tweet-of-acme", "globex": "tweet-of-globex"}

# What a job of each tenant is found in; the canary is in every one of them.
HOLDING = frozenset(
    {"job", "dead_letter", "history", "attempt", "log_line", "output", "lane", "gate", "arrival"}
    | {"item", "log_cut"}
    | {"audit", "tenant", "token", "jobs", "dead_letters", "attempts", "tenants", "tokens"}
    | {"trigger", "triggers", "event", "emission", "delivery", "firing"}
    | {"operation", "operations", "saved_view"}
)


@dataclass(frozen=True)
class Estate:
    """What there is, by tenant."""

    ids: dict[str, UUID]
    queued: dict[str, UUID]
    dead: dict[str, UUID]
    done: dict[str, UUID]
    token: dict[str, str]

    def principal(self, tenant: str, role: Role = Role.ADMIN) -> Principal:
        return Principal(f"{role}@{tenant}", role, tenant, self.ids[tenant])


OPERATOR = Principal("the operator", Role.OPERATOR)
WORKER = Principal("a worker", Role.WORKER)


async def an_estate(core: Core) -> Estate:
    """Every table that holds a tenant's things holds some of each tenant's."""
    estate = Estate({}, {}, {}, {}, {})
    await core.a_definition("kind")
    await core.a_definition("shared", max_running=1)
    worker = await core.a_worker(1_000_000)
    for tenant in TENANTS:
        canary = CANARIES[tenant]
        await core.send(calls.create_tenant(tenant, "pro", canary, {}))
        estate.ids[tenant] = await core.one(
            "select id from fairlane.tenant where slug = $1", tenant
        )
        asked = {
            "payload": {"secret": canary},
            "concurrency_key": canary,
            "correlation_id": canary,
            "created_by": canary,
        }
        estate.done[tenant] = await core.enqueue(tenant, "kind", **asked)
        await core.finish(await core.claim_one(worker), result={"result": canary})
        estate.dead[tenant] = await core.enqueue(tenant, "kind", max_attempts=1, **asked)
        lease = await core.claim_one(worker)
        said = {
            "job_id": lease.job_id,
            "attempt": lease.attempt,
            "phase": canary,
            "lines": [{"level": "info", "message": canary}] * 2,
            "items": [{"name": canary, "state": "failed", "error": canary}],
            "output": {"stdout": {"tail": canary, "bytes": 9}},
        }
        await core.send(calls.report(worker, [said]))
        cut = "select fairlane.cut_lines(array[$1::uuid], fairlane.clock(), 1)"
        await core.one(cut, lease.job_id)
        await core.fail(lease, error={"type": "Oops", "message": canary})
        await core.enqueue(tenant, "kind", max_attempts=2, **asked)
        await core.fail(await core.claim_one(worker), error={"type": "Oops", "message": canary})
        await core.cancel(await core.enqueue(tenant, "kind", **asked), reason=canary)
        made = await tokens.create(core.conn, Role.ADMIN, tenant=tenant, name=canary)
        estate.token[tenant] = made.id
        await some_triggers(core, tenant, canary)
        await core.send(calls.create_operation(tenant, "retry", {"ids": []}, canary))
    for tenant in TENANTS:
        # Not swept and not dispatched any more: their arrivals and events stay.
        await core.send(calls.emit([{"tenant": tenant, "name": CANARIES[tenant]}]))
        estate.queued[tenant] = await core.enqueue(
            tenant, "kind", **{**asked_by(tenant), "id": uuid7(), "resend": False}
        )
    await tokens.create(core.conn, Role.OPERATOR, name="of nobody")
    return estate


async def some_triggers(core: Core, tenant: str, canary: str) -> None:
    """A trigger that has fired, and an event that was delivered."""
    on = {"label": canary, "trigger_type": "event", "event_name": canary, "definition_key": "kind"}
    trigger = await store.create(core.conn, tenant, on)
    event = {"tenant": tenant, "name": canary, "data": {"secret": canary}}
    await core.send(calls.emit([event]))
    await Dispatcher().tick(core.conn)
    await asking.fire(core.conn, trigger, {}, tenant)
    await core.send(calls.save_view(tenant, canary, f"q={canary}"))
    worker = await core.a_worker(1_000_000)
    for _ in range(2):
        await core.finish(await core.claim_one(worker))


def asked_by(tenant: str) -> dict[str, object]:
    canary = CANARIES[tenant]
    return {"payload": {"secret": canary}, "concurrency_key": canary, "correlation_id": canary}


def now() -> datetime:
    return datetime.now(UTC)
