"""Figures about a tenant's jobs, or everybody's, that cost the same however many there are."""

# ruff: noqa: S608 - statements are made from fixed parts; what a caller says is an argument.

from typing import Any

from fairlane.access.principal import Principal
from fairlane.api.listing import WINDOW
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send

COUNTED = 1000

LIMITS = ("max_running", "starts_per_minute", "max_backlog", "backlog_policy", "weight")


def _of(tenant: str) -> str:
    """The statement; `tenant` is a condition on a tenant_id, or nothing for all tenants."""
    where = f"where {tenant}" if tenant else ""
    also = f"and {tenant}" if tenant else ""
    bounded = f"(select count(*) from (select from {{rows}} limit {COUNTED + 1}) n)"
    ended = {
        status: bounded.format(rows=f"fairlane.ended where status = '{status}' {also}")
        for status in ("succeeded_with_errors", "failed", "canceled")
    }
    newest = f"(select status from fairlane.ended {where} order by id desc limit {WINDOW}) h"
    ended["succeeded"] = bounded.format(rows=f"{newest} where status = 'succeeded'")
    ended["dead_letter"] = bounded.format(
        rows=f"fairlane.dead_letter where status <> 'retried' {also}"
    )
    return f"""
select c.*, {", ".join(f"{sql} as {status}" for status, sql in ended.items())},
       (select extract(epoch from fairlane.clock() - queued_at)::float8
          from (select status, queued_at from fairlane.job {where} order by id limit {WINDOW}) j
         where status = 'queued'
         limit 1) as oldest_queued_age_seconds
  from (select coalesce(sum(scheduled), 0)::bigint as scheduled,
               coalesce(sum(queued), 0)::bigint as queued,
               coalesce(sum(running), 0)::bigint as running
          from fairlane.lane_counts {where}) c"""


OF_TENANT = _of("tenant_id = $1")
OF_ALL = _of("")
STATES = (
    *("scheduled", "queued", "running", "succeeded", "succeeded_with_errors", "failed"),
    *("canceled", "dead_letter"),
)


async def summary_of(connection: Connection, who: Principal) -> dict[str, Any]:
    (row,) = await send(connection, Call(OF_TENANT, (who.tenant_id,)))
    call = Call("select * from fairlane.tenants where id = $1", (who.tenant_id,))
    (tenant,) = await send(connection, call)
    return {
        "tenant": tenant["slug"],
        **figures(row),
        "limits": {name: tenant[name] for name in LIMITS},
        "plan": tenant["plan"],
        "paused_at": tenant["paused_at"],
    }


async def summary_of_all(connection: Connection) -> dict[str, Any]:
    (row,) = await send(connection, Call(OF_ALL))
    return figures(row)


def figures(row: Record) -> dict[str, Any]:
    age = row["oldest_queued_age_seconds"]
    return {
        "counts": {
            state: min(row[state], COUNTED) if _is_counted(state) else row[state]
            for state in STATES
        },
        "at_least": [state for state in STATES if _is_counted(state) and row[state] > COUNTED],
        "queued": row["queued"],
        "running": row["running"],
        "oldest_queued_age_seconds": None if age is None else round(max(age, 0), 3),
    }


def _is_counted(state: str) -> bool:
    return state not in ("scheduled", "queued", "running")
