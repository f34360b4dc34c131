"""Makes jobs by the clock: what is due is fired once, planned anew, and written down at once."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.metrics.scheduling import SCHEDULE, Scheduling
from fairlane.scheduler.making import Made, Tenant, make
from fairlane.scheduler.settle import hold_back, keep_what_is_taken
from fairlane.scheduler.store import definitions
from fairlane.scheduler.trigger import Trigger

log = logging.getLogger("fairlane.scheduler")

BATCH = 1000
MOST_RUNS = 5000  # of a batch; one schedule may have more
AGAIN = timedelta(hours=1)  # until a schedule that cannot be followed is tried again
MOST_MISSED = 100  # runs that `missed: all` makes up for, the newest
LATE = timedelta(seconds=60)  # a run that comes later than this was missed

DUE = """
select g.*, t.slug, t.name as tenant_name, fairlane.clock() as now
  from fairlane.trigger g
  left join fairlane.tenant t on t.id = g.tenant_id
 where g.is_enabled
   and g.due_at <= fairlane.clock()
   and g.chore is null
 order by g.due_at
 limit $1
   for no key update of g skip locked
"""
# A clock that went back, or a plan made anew, may come to a time that was fired.
FIRED = """
select f.trigger_id, f.scheduled_for
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as asked (tenant_id, trigger_id, at)
  join fairlane.firing f
    on f.tenant_id = asked.tenant_id and f.trigger_id = asked.trigger_id
   and f.scheduled_for = asked.at
"""


@dataclass
class Runs:
    """What a schedule has to do now, and when it comes next."""

    fire: list[datetime] = field(default_factory=list)
    skipped: datetime | None = None  # the last that is not made up for
    missed: int = 0  # how many are not, as far as it looks back
    next_at: datetime | None = None


def runs_of(trigger: Trigger, now: datetime) -> Runs:
    """By the trigger's policy for what was missed."""
    cron = trigger.cron
    if trigger.next_at is None:
        return Runs(next_at=cron.after(now))
    start = trigger.next_at - timedelta(seconds=1)
    found, more = cron.newest(start, now, MOST_MISSED + 1)
    while found and trigger.due(found[-1]) > now:
        found.pop()
    if not found:
        return Runs(next_at=cron.after(start))
    next_at = cron.after(found[-1])
    match trigger.missed:
        case "all":
            fire = found[-MOST_MISSED:]
        case "once":
            fire = found[-1:]
        case _:
            fire = [each for each in found if now - trigger.due(each) <= LATE]
    left = found[: len(found) - len(fire)]
    return Runs(fire, left[-1] if left else None, len(left) + more, next_at)


Due = tuple[Trigger, Tenant | None, Runs]


class Firer:
    def __init__(self, metrics: Scheduling | None = None) -> None:
        self._metrics = metrics or Scheduling()

    async def tick(self, connection: Connection) -> int:
        """Fire a batch of what is due in one transaction; how many triggers it had."""
        outcomes: list[str] = []
        async with connection.transaction():
            rows = await send(connection, Call(DUE, (BATCH,)))
            if rows:
                outcomes = await self._fire(connection, rows)
        self._metrics.fired(SCHEDULE, outcomes)
        return len(rows)

    async def _fire(self, connection: Connection, rows: Sequence[Record]) -> list[str]:
        """What came of each."""
        firings: list[dict[str, Any]] = []
        plans: list[dict[str, Any]] = []
        due: list[Due] = []
        runs_to_make = 0
        for row in rows:
            if runs_to_make >= MOST_RUNS:
                break  # those that are left are still due
            try:
                trigger, tenant, runs = _due(row)
                plan = plan_of(trigger, runs)
            except Exception as error:
                # One that cannot be followed must not hold up the others, nor come every second.
                log.exception("schedule %s cannot be followed", row["id"])
                plans.append(
                    {"id": row["id"], "next_at": row["next_at"], "due_at": row["now"] + AGAIN}
                )
                firings.append(_broken(row, error))
                continue
            runs_to_make += len(runs.fire)
            plans.append(plan)
            due.append((trigger, tenant, runs))
        fired = await fired_of(connection, due)
        known = await definitions(connection, [each.definition_name for each, _, _ in due])
        made: list[Made] = []
        for trigger, tenant, runs in due:
            new = [each for each in runs.fire if (trigger.id, each) not in fired]
            if not new and runs.skipped and (trigger.id, runs.skipped) not in fired:
                firings.append(row_of(trigger, runs.skipped, "missed", missed=runs.missed))
            for moment in new if tenant is not None else ():
                assert tenant is not None
                missed = runs.missed if moment == new[0] else 0
                about = {"source": "schedule", "source_ref": str(trigger.id)}
                definition = known.get(trigger.definition_name)
                values = values_of(trigger, moment)
                made.append(make(trigger, tenant, values, definition, about, (moment, missed)))
        await hold_back(connection, made)

        async def keep(part: Sequence[Made]) -> None:
            jobs = [each.job for each in part if each.job is not None]
            await send(connection, calls.fire(_firings(part), jobs, []))

        await keep_what_is_taken(connection, made, keep)
        await send(connection, calls.fire(firings, [], plans))
        return [*(each.status for each in made), *(row["status"] for row in firings)]


def _due(row: Record) -> Due:
    trigger = Trigger.of(row)
    tenant = Tenant(row["tenant_id"], row["slug"], row["tenant_name"]) if row["slug"] else None
    values_of(trigger, row["now"])
    return trigger, tenant, runs_of(trigger, row["now"])


def plan_of(trigger: Trigger, runs: Runs) -> dict[str, Any]:
    coming = runs.next_at
    due_at = None if coming is None else trigger.due(coming)
    return {"id": trigger.id, "next_at": coming, "due_at": due_at}


def _broken(row: Record, error: Exception) -> dict[str, Any]:
    return {
        "tenant_id": row["tenant_id"],
        "trigger_id": row["id"],
        "scheduled_for": row["now"],
        "status": "error",
        "error": {
            "type": type(error).__name__,
            "message": f"the schedule cannot be followed: {error}",
        },
    }


def values_of(trigger: Trigger, moment: datetime) -> dict[str, Any]:
    """What a template of a schedule may look into."""
    zone = trigger.timezone or "UTC"
    return {
        "schedule": {
            "time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "local_time": moment.astimezone(ZoneInfo(zone)).isoformat(),
            "timezone": zone,
        }
    }


async def fired_of(connection: Connection, due: Sequence[Due]) -> set[tuple[UUID, datetime]]:
    """What was fired already of what is due."""
    asked = [
        (trigger.tenant_id, trigger.id, moment)
        for trigger, _, runs in due
        for moment in (*runs.fire, *([runs.skipped] if runs.skipped else []))
    ]
    args = tuple([each[n] for each in asked] for n in range(3))
    return {tuple(row) for row in await send(connection, Call(FIRED, args))}


def _firings(made: Sequence[Made]) -> list[dict[str, Any]]:
    found = []
    item = 0
    for each in made:
        moment, missed = each.occasion
        row = row_of(each.trigger, moment, each.status, missed=missed)
        row |= {"job_id": each.job_id, "error": each.error}
        if each.job is not None:
            item += 1
            row["item"] = item
        found.append({name: value for name, value in row.items() if value is not None})
    return found


def row_of(trigger: Trigger, moment: datetime, status: str, **more: Any) -> dict[str, Any]:
    return {
        "tenant_id": trigger.tenant_id,
        "trigger_id": trigger.id,
        "scheduled_for": moment,
        "status": status,
        **more,
    }
