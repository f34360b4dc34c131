"""What a call can be about: its tenant's, another's, one that is gone, one that never was."""

from api.calls import PREFIX, UNKNOWN, Operation, target
from api.world import World

KINDS = ("own", "fellow", "foreign", "deleted", "unknown", "malformed")

# The longest prefix counts. Where a thing is known by a name, its name is of the installation.
TABLES = {
    "/jobs": ("job", "history", "dead_letter"),
    "/worker": ("job",),
    "/dead-letters": ("dead_letter",),
    "/operations": ("operation",),
    "/tokens": ("token",),
    "/triggers": ("trigger",),
    "/events": ("event",),
    "/admin/alerts/silences": ("silence",),
    "/admin/alerts/rules": (),
    "/admin/alerts/channels": (),
    "/admin/alerts/{alert_id}": ("alert",),
    "/admin/jobs/definitions": (),
    "/admin/tenants": (),
    "/admin/plans": (),
    "/admin/queues": (),
}


def tables_of(operation: Operation) -> tuple[str, ...]:
    path = operation.path.removeprefix(PREFIX)
    found = max((each for each in TABLES if path.startswith(each)), key=len, default=None)
    assert found is not None, f"{operation}: say in TABLES where what it is about is kept"
    return TABLES[found]


def unknown_id(operation: Operation) -> str:
    """One that nobody ever had, of the right form."""
    path = operation.path.removeprefix(PREFIX)
    if path.startswith("/tokens"):
        return "Zz345678"
    named = ("/admin/tenants", "/admin/plans", "/admin/queues")
    if path.startswith((*named, "/admin/alerts/rules", "/admin/alerts/channels")):
        return "no-such-name"
    return UNKNOWN


async def removed(world: World, operation: Operation, thing: str) -> str:
    """Take a thing away, as retention or a deletion would."""
    for table in tables_of(operation):
        await world.core.fetch(f"delete from fairlane.{table} where id::text = $1", thing)
    return thing


async def thing_of(world: World, operation: Operation, kind: str, tenant: str) -> str:
    """Something of that kind, as somebody of `tenant` sees it."""
    other = "other" if tenant == "acme" else "acme"
    match kind:
        case "own" | "fellow":
            found = await target(world, operation, tenant)
        case "foreign":
            found = await target(world, operation, other)
        case "deleted" if tables_of(operation):
            found = await target(world, operation, tenant)
            assert found is not None
            return await removed(world, operation, found)
        case "malformed":
            return "no-such-id"
        case _:
            return unknown_id(operation)
    assert found is not None
    return found
