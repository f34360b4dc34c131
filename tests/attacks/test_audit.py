"""Every privileged change leaves one line that nobody of the server can take back (S31, S32)."""

from typing import Any

import asyncpg
import pytest

from api.calls import PREFIX, Operation, operations, target
from api.world import World
from attacks.cast import Player
from attacks.tally import tallied
from fairlane.access.server_role import ROLE
from support.core import Core

# Work, and not a change of somebody's: what a tenant enqueues and workers do is its own record.
UNAUDITED = {
    "POST /jobs",
    "POST /jobs/batch",
    "POST /events",
    "POST /events/{event_id}/resend",
    "POST /triggers/test",
    "POST /triggers/{trigger_id}/test",
    "POST /operations/{operation_id}/resume",  # of one that runs: nothing changes by it
}
CHANGES = [
    operation
    for operation in operations()
    if operation.method != "GET" and operation.role != "worker"
]


def named(operation: Operation) -> str:
    return f"{operation.method} {operation.path.removeprefix(PREFIX)}"


async def lines(core: Core) -> list[Any]:
    return await core.fetch("select id, actor, action, tenant_id from fairlane.audit order by id")


async def test_every_change_has_its_line_with_who_and_for_whom(
    world: World, cast: dict[str, Player], core: Core
) -> None:
    with tallied("changes without a line in the audit") as tally:
        for operation in CHANGES:
            about = await target(world, operation, "acme")
            who = cast["operator" if operation.role == "operator" else "admin"]
            before = len(await lines(core))
            body = operation.body
            options = {} if body is None else {"json": body}
            answer = await who.caller.call(operation.method, operation.url(about), **options)
            tally.injected += 1
            tally.hold(answer.status_code < 300, f"{operation}: {answer.text}")
            new = (await lines(core))[before:]
            subject = f"token:{str(who.caller.token).split('_')[1]}"
            if named(operation) in UNAUDITED:
                tally.hold(not new, f"{operation} is audited: leave it out of UNAUDITED")
                continue
            tally.hold(len(new) == 1, f"{operation} left {len(new)} lines")
            tally.hold({line["actor"] for line in new} <= {subject}, f"{operation}: {new}")


async def test_an_operators_change_in_a_tenant_stands_in_that_tenants_audit(
    world: World, cast: dict[str, Player], core: Core
) -> None:
    """Break glass: under the operator's own name, where the tenant's admin reads it."""
    job = await core.enqueue("acme", "a.task")
    answer = await cast["operator for acme"].caller.post(f"/jobs/{job}/cancel", {"reason": "asked"})
    assert answer.status_code == 200
    acme = await core.one("select id from fairlane.tenant where slug = 'acme'")
    (line,) = await core.fetch("select * from fairlane.audit where action = 'job.cancel'")
    operator = str(cast["operator"].caller.token).split("_")[1]
    assert (line["actor"], line["tenant_id"]) == (f"token:{operator}", acme)


STATEMENTS = (
    "insert into fairlane.audit (at, actor, action, target) values (now(), 'x', 'y', 'z')",
    "update fairlane.audit set actor = 'somebody else'",
    "delete from fairlane.audit",
    "truncate fairlane.audit",
    "alter table fairlane.audit disable row level security",
    "drop table fairlane.audit",
    "create trigger t before insert on fairlane.audit execute function pg_sleep(1)",
)


@pytest.mark.parametrize("role", [ROLE, "fairlane_producer"])
async def test_no_role_but_the_owner_touches_the_audit(core: Core, role: str) -> None:
    await core.fetch("select fairlane.note_change('x', null, 'y')")
    before = await lines(core)
    for statement in STATEMENTS:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await as_role(core, role, statement)
    assert await lines(core) == before


async def as_role(core: Core, role: str, statement: str) -> None:
    async with core.conn.transaction():
        await core.conn.execute(f"set local role {role}")
        await core.conn.execute("set local fairlane.tenant_id = '*'")
        await core.conn.execute(statement)
