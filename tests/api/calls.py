"""Every call of the document, with something to call it with."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from api.world import World
from fairlane.access import tokens
from fairlane.access.roles import Role
from fairlane.api.app import asgi
from fairlane.config import Settings
from fairlane.core import calls
from fairlane.scheduler import store

PREFIX = "/api/v1"
ROLES = ("viewer", "member", "admin", "operator", "worker")
UNKNOWN = "0197b0a4-0c5e-7c3a-9d53-3f0e6a1b2c4d"


@dataclass(frozen=True)
class Operation:
    """One call, and the rule that it states of itself."""

    method: str
    path: str
    document: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def role(self) -> str:
        role = self.document["x-fairlane-role"]
        assert role in ROLES, f"{self} says of no role that it may call it"
        return str(role)

    @property
    def of_tenant(self) -> bool:
        return bool(self.document["x-fairlane-tenant"])

    @property
    def allowed(self) -> set[str]:
        """The roles that may, by the order of the contract."""
        if self.role == "worker":
            return {"worker", "operator"}
        order = ("viewer", "member", "admin", "operator")
        also = self.document.get("x-fairlane-also", [])
        return {*order[order.index(self.role) :], *also}

    @property
    def body(self) -> Any:
        """Something that passes, where the call takes a body."""
        return BODIES.get((self.method, self.path.removeprefix(PREFIX)), lambda: None)()

    def url(self, target: str | None) -> str:
        """The path below /api/v1, about `target`."""
        path = self.path.removeprefix(PREFIX)
        if "{" not in path:
            return path
        assert target is not None, f"{self} needs something to be called about"
        return path[: path.index("{")] + target + path[path.index("}") + 1 :]


@cache
def _document() -> str:
    return json.dumps(asgi("postgresql://nowhere/none", settings=Settings()).openapi())


def document() -> dict[str, Any]:
    """The caller's own, to change."""
    found: dict[str, Any] = json.loads(_document())
    return found


def operations() -> Iterator[Operation]:
    for path, methods in document()["paths"].items():
        for method, each in methods.items():
            if path.startswith(PREFIX):
                yield Operation(method.upper(), path, each)


def soon() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat()


TRIGGER = {"label": "t", "trigger_type": "schedule", "cron_expr": "0 3 * * *"}
TRIGGER |= {"definition_key": "a.task"}
ON_EVENT = {"label": "e", "trigger_type": "event", "event_name": "folder.updated"}
ON_EVENT |= {"definition_key": "a.task"}
HELD = {"worker": "w1", "attempt": 1}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/jobs"): lambda: {"definition_key": "a.task"},
    ("POST", "/jobs/batch"): lambda: {"jobs": [{"definition_key": "a.task"}]},
    ("POST", "/jobs/bulk"): lambda: {"action": "cancel", "filter": {"q": "none"}},
    ("POST", "/dead-letters/bulk"): lambda: {"action": "ignore", "filter": {"queue": "none"}},
    ("PATCH", "/jobs/{job_id}"): lambda: {"priority": 5},
    ("POST", "/dead-letters/{job_id}/note"): lambda: {"notes": "seen"},
    ("POST", "/dead-letters/{job_id}/assign"): lambda: {"assignee": "ada"},
    ("POST", "/tokens"): lambda: {"role": "viewer"},
    ("POST", "/triggers"): lambda: {**TRIGGER, "label": uuid4().hex},
    ("POST", "/triggers/test"): lambda: ON_EVENT,
    ("PATCH", "/triggers/{trigger_id}"): lambda: {"label": uuid4().hex},
    ("POST", "/events"): lambda: {"name": "folder.updated"},
    ("POST", "/admin/tenants"): lambda: {"slug": f"t-{uuid4().hex}"},
    ("PATCH", "/admin/tenants/{slug}"): lambda: {"weight": 2},
    ("POST", "/admin/plans"): lambda: {"name": f"p-{uuid4().hex}"},
    ("PATCH", "/admin/plans/{name}"): lambda: {"weight": 2},
    ("POST", "/admin/queues"): lambda: {"name": f"q-{uuid4().hex}"},
    ("PATCH", "/admin/queues/{name}"): lambda: {"slots": 2},
    ("POST", "/admin/jobs/definitions"): lambda: {"key": f"k-{uuid4().hex}"},
    ("PATCH", "/admin/jobs/definitions/{definition_id}"): lambda: {"description": uuid4().hex},
    ("POST", "/admin/alerts/{alert_id}/acknowledge"): lambda: {"note": "seen"},
    ("POST", "/admin/alerts/silences"): lambda: {"until": soon(), "reason": "x"},
    ("PATCH", "/admin/alerts/rules/{name}"): lambda: {"threshold": 2},
    ("PUT", "/admin/alerts/channels/{name}"): lambda: {"kind": "log"},
    ("POST", "/worker/jobs/claim"): lambda: {"worker": "w1", "queues": {"bulk": 1}},
    ("POST", "/worker/jobs/{job_id}/heartbeat"): lambda: HELD,
    ("POST", "/worker/jobs/{job_id}/progress"): lambda: HELD,
    ("POST", "/worker/jobs/{job_id}/complete"): lambda: HELD,
    ("POST", "/worker/jobs/{job_id}/fail"): lambda: {**HELD, "error": {"message": "x"}},
}


async def _of_alerts(world: World, path: str) -> str:
    named = {"rules": "dead_letters", "channels": "log"}
    if (part := path.split("/")[3]) in named:
        return named[part]
    made = {
        "silences": "insert into fairlane.silence (until, reason, created_by, created_at) "
        "values (now() + interval '1 hour', 'x', 'x', now()) returning id",
    }.get(
        part,
        "insert into fairlane.alert (rule, subject, state, severity, value, threshold, since) "
        "values ('dead_letters', gen_random_uuid(), 'firing', 'info', 1, 0, now()) returning id",
    )
    return str(await world.core.one(made))


async def target(world: World, operation: Operation, tenant: str) -> str | None:
    """Something of a tenant's that a call can be about; of none, where the call is not."""
    path = operation.path.removeprefix(PREFIX)
    if "{" not in path:
        return None
    if path.startswith("/dead-letters"):
        dead = await world.died(tenant, "a.task")
        if path.endswith("/reopen"):
            await world.core.resolve(UUID(dead))
        return dead
    if path.startswith("/operations"):
        made = await world.core.send(calls.create_operation(tenant, "cancel", {"ids": []}))
        return str(made[0]["id"])
    if path.startswith("/tokens"):
        return (await tokens.create(world.core.conn, Role.VIEWER, tenant=tenant)).id
    if path.startswith("/triggers"):
        made_of = ON_EVENT if path.endswith("/test") else TRIGGER
        return str((await store.create(world.core.conn, tenant, made_of)).id)
    if path.startswith("/events"):
        event = {"tenant": tenant, "name": "folder.updated"}
        return str((await world.core.send(calls.emit([event])))[0]["id"])
    if path.startswith("/admin/jobs/definitions"):
        return str(await world.core.one("select id from fairlane.definition limit 1"))
    if path.startswith("/admin/alerts"):
        return await _of_alerts(world, path)
    if path.startswith("/admin/workers"):
        found = await world.core.a_worker()
        if operation.method == "DELETE":
            await world.core.send(calls.stop_worker(found))
        return str(found)
    if path.startswith("/admin"):
        return {"tenants": "acme", "plans": "pro", "queues": "default"}[path.split("/")[2]]
    if path.endswith(("/retry", "/result")):
        return await world.ended(tenant, "a.task")
    if not path.startswith("/worker"):
        return str(await world.core.enqueue(tenant, "a.task"))
    job = str(await world.core.enqueue(tenant, "a.task", queue="bulk"))
    claim = {"worker": "w1", "queues": {"bulk": 1}}
    (held,) = (await world.worker.post("/worker/jobs/claim", claim)).json()["jobs"]
    assert held["id"] == job
    return job
