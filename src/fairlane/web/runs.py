"""What came of a trigger's last times and events, and of the jobs that it made."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from markupsafe import Markup

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.web import charts
from fairlane.web.words import STATES, plural

STRIP = 20

# The last of each trigger: a look into an index a trigger.
LAST = """
select g.id as trigger_id, r.at, r.status, r.job_id
  from unnest($1::uuid[]) g (id)
 cross join lateral (
       select * from (
         (select delivered_at as at, status, job_id from fairlane.delivery
           where trigger_id = g.id order by delivered_at desc, event_seq desc limit $2)
          union all
         (select fired_at, status, job_id from fairlane.firing
           where trigger_id = g.id order by fired_at desc, scheduled_for desc limit $2)) came
        order by at desc limit $2) r
 order by g.id, r.at
"""
STATUSES = """
select id, case when status = 'scheduled' and attempt > 0 then 'retrying' else status end as status
  from fairlane.job where id = any ($1)
 union all
select id, 'dead_letter' from fairlane.dead_letter where id = any ($1)
 union all
select id, status from fairlane.history where id = any ($1)
"""

# Where no job was made of it: what it is drawn as, and what is said.
OTHERWISE = {
    "enqueued": ("queued", "enqueued"),
    "deduped": ("scheduled", "a job with the same payload was there"),
    "skipped": ("scheduled", "skipped: the run before it was still under way"),
    "disabled": ("scheduled", "the trigger was paused"),
    "missed": ("retrying", "missed"),
    "done": ("succeeded", "done"),
    "error": ("dead_letter", "no job could be made of it"),
}


def outcome_of(came: Mapping[str, Any] | Record, statuses: Mapping[UUID, str]) -> tuple[str, str]:
    """The state that it is drawn in, and its words: those of the job, where it made one."""
    status = statuses.get(came["job_id"]) if came["job_id"] is not None else None
    if status is not None and came["status"] in ("enqueued", "done"):
        return status, STATES.get(status, status)
    state, said = OTHERWISE.get(came["status"], ("queued", str(came["status"])))
    return state, said[:1].upper() + said[1:]


async def statuses_of(connection: Connection, jobs: Sequence[UUID | None]) -> dict[UUID, str]:
    wanted = sorted({job for job in jobs if job is not None})
    if not wanted:
        return {}
    return {row["id"]: row["status"] for row in await send(connection, Call(STATUSES, (wanted,)))}


async def strips_of(connection: Connection, triggers: Sequence[UUID]) -> dict[UUID, Markup]:
    """The last runs of each as squares, oldest first."""
    rows = await send(connection, Call(LAST, (list(triggers), STRIP)))
    statuses = await statuses_of(connection, [row["job_id"] for row in rows])
    found: dict[UUID, list[tuple[str, str]]] = {}
    for row in rows:
        state, said = outcome_of(row, statuses)
        square = "succeeded" if state == "succeeded_with_errors" else state
        when = row["at"].strftime("%Y-%m-%d %H:%M UTC")
        found.setdefault(row["trigger_id"], []).append((square, f"{when}: {said}"))
    return {trigger: _strip(runs) for trigger, runs in found.items()}


def _strip(runs: list[tuple[str, str]]) -> Markup:
    good = sum(state == "succeeded" for state, _ in runs)
    bad = sum(state in ("failed", "dead_letter") for state, _ in runs)
    return charts.strip(runs, f"{plural(len(runs), 'run')}: {good} good, {bad} failed")
