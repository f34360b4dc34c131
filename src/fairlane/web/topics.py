"""What is looked at to know that a topic changed: fingerprints, at a cost that does not grow with
the number of jobs. They cross tenants, and say of each only that something is not as it was."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.api.service import Service
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send

# Counters tell of every job that comes, starts and ends; the newest ids of one that takes another's
# place; what runs, of its progress. What one tenant runs at once is bounded by its limits.
OF_JOBS = """
with running as (
  select tenant_id, md5(string_agg(concat_ws('/', id, attempt, phase, progress::text,
                                             cancel_requested_at), ',' order by id)) as print
    from fairlane.running_ids() r (running)
   cross join lateral (select * from fairlane.job
                        where id = running and status = 'running' offset 0) j
   group by tenant_id
)
select t.slug as key,
       concat_ws(' ',
         (select concat_ws('/', sum(queued), sum(scheduled), sum(running))
            from fairlane.lane_counts where tenant_id = t.id),
         (select id from fairlane.job where tenant_id = t.id order by id desc limit 1),
         (select id from fairlane.history where tenant_id = t.id order by id desc limit 1),
         (select concat_ws('/', max(coalesce(settled_at, died_at)),
                           md5(string_agg(concat_ws('/', id, status, assignee), ',' order by id)))
            from (select id, status, assignee, settled_at, died_at from fairlane.dead_letter
                   where tenant_id = t.id order by id desc limit 100) d),
         r.print, t.paused_at) as print
  from fairlane.tenant t
  left join running r on r.tenant_id = t.id
 where t.slug = any ($1)
"""
# By the version of its row: what went there and back between two looks was shown in between.
OF_ONE_JOB = """
select a.id::text as key,
       concat_ws(' ',
         (select xmin from fairlane.job where id = a.id),
         (select concat_ws('/', status, attempt, settled_at, assignee, md5(notes))
            from fairlane.dead_letter where id = a.id),
         (select status from fairlane.history where id = a.id limit 1),
         (select seq from fairlane.log_line where job_id = a.id order by seq desc limit 1),
         (select max(written_at) from fairlane.output where job_id = a.id)) as print
  from unnest($1::uuid[]) a (id)
"""
# Each step of an operation writes when it was.
OF_OPERATIONS = """
select t.slug as key,
       (select concat_ws('/', max(updated_at), max(id::text))
          from (select id, updated_at from fairlane.operation
                 where tenant_id = t.id order by id desc limit 100) o) as print
  from fairlane.tenant t
 where t.slug = any ($1)
"""
# A schedule's next time moves with each of its runs; what comes of events is counted up.
OF_TRIGGERS = """
select t.slug as key,
       concat_ws(' ',
         (select concat_ws('/', count(*), max(updated_at), sum(extract(epoch from next_at)))
            from fairlane.trigger where tenant_id = t.id),
         (select concat_ws('/', event_seq, status) from fairlane.delivery
           where tenant_id = t.id order by event_seq desc, trigger_id desc limit 1)) as print
  from fairlane.tenant t
 where t.slug = any ($1)
"""
OF_EVENTS = """
select t.slug as key,
       concat_ws(' ',
         (select seq from fairlane.event where tenant_id = t.id order by seq desc limit 1),
         (select seq from fairlane.emission where tenant_id = t.id order by seq limit 1),
         (select concat_ws('/', event_seq, status) from fairlane.delivery
           where tenant_id = t.id order by event_seq desc, trigger_id desc limit 1)) as print
  from fairlane.tenant t
 where t.slug = any ($1)
"""
OF_OPS = """
select 'ops' as key,
       concat_ws(' ',
         (select concat_ws('/', sum(queued), sum(scheduled), sum(running))
            from fairlane.lane_counts),
         (select string_agg(concat_ws('/', name, state, running), ',' order by name)
            from fairlane.workers where stopped_at is null),
         (select string_agg(concat_ws('/', name, paused_at, updated_at), ',') from fairlane.queue),
         (select string_agg(slug, ',') from fairlane.tenant where paused_at is not null),
         (select max(updated_at) from fairlane.definition),
         (select string_agg(concat_ws('/', id, state), ',' order by id) from fairlane.alert
           where state <> 'resolved'),
         (select max(taken_at) from fairlane.sample)) as print
"""
# Everybody's jobs; what runs at once is bounded by the workers' slots.
OF_WORK = """
select 'work' as key,
       concat_ws(' ',
         (select concat_ws('/', sum(queued), sum(scheduled), sum(running))
            from fairlane.lane_counts),
         (select id from fairlane.job order by id desc limit 1),
         (select id from fairlane.history order by id desc limit 1),
         (select md5(string_agg(concat_ws('/', id, attempt, phase, progress::text), ','
                                order by id))
            from fairlane.running_ids() r (running)
           cross join lateral (select * from fairlane.job
                                where id = running and status = 'running' offset 0) j)) as print
"""
# Workers tell that they live a few times a minute each; whoever looks at them looks at that.
OF_WORKERS = """
select 'workers' as key,
       concat_ws(' ',
         (select md5(string_agg(concat_ws('/', id, state, running, last_seen_at), ',' order by id))
            from fairlane.workers where stopped_at is null),
         (select count(*) from fairlane.workers where stopped_at is not null)) as print
"""
# Alerts, their silences and rules: few rows.
OF_ALERTS = """
select 'alerts' as key,
       concat_ws(' ',
         (select string_agg(concat_ws('/', id, state, value, acknowledged_at), ',' order by id)
            from fairlane.alert where state <> 'resolved'),
         (select max(resolved_at) from fairlane.alert where state = 'resolved'),
         (select string_agg(id::text, ',' order by id) from fairlane.silence
           where until > fairlane.clock()),
         (select max(updated_at) from fairlane.alert_rule)) as print
"""
# Who has how much: it changes with every start, so it is looked at less often.
OF_FAIRNESS = """
select 'fairness' as key,
       concat_ws(' ',
         (select concat_ws('/', sum(queued), sum(running)) from fairlane.lane_counts),
         (select concat_ws('/', sum(started), sum(weight)) from fairlane.share),
         (select max(taken_at) from fairlane.sample)) as print
"""
WATCHING = Principal("web", Role.OPERATOR)
PATIENCE = 2.0


@dataclass(frozen=True)
class Probe:
    """A statement that answers `key` and `print` for the keys that it is given."""

    sql: str
    key_of: Callable[[str], str]
    every: float = 0.0
    """Seconds between two looks, for what is dear to ask or changes all the time."""


class Looks:
    """The fingerprints of the last look. A page that needs another topic adds a probe here."""

    OF_TENANT: ClassVar = frozenset({"jobs", "operations", "triggers", "events"})
    OF_OPERATORS: ClassVar = frozenset({"ops", "work", "workers", "alerts", "fairness"})
    PROBES: ClassVar[dict[str, Probe]] = {
        "jobs": Probe(OF_JOBS, lambda topic: topic.split(":")[1]),
        "job": Probe(OF_ONE_JOB, lambda topic: topic.split(":")[1]),
        "operations": Probe(OF_OPERATIONS, lambda topic: topic.split(":")[1], every=0.5),
        "triggers": Probe(OF_TRIGGERS, lambda topic: topic.split(":")[1]),
        "events": Probe(OF_EVENTS, lambda topic: topic.split(":")[1]),
        "ops": Probe(OF_OPS, lambda topic: topic, every=1.0),
        "work": Probe(OF_WORK, lambda topic: topic, every=1.0),
        "workers": Probe(OF_WORKERS, lambda topic: topic, every=1.0),
        "alerts": Probe(OF_ALERTS, lambda topic: topic, every=1.0),
        "fairness": Probe(OF_FAIRNESS, lambda topic: topic, every=2.0),
    }

    def __init__(self) -> None:
        self._prints: dict[str, str | None] = {}
        self._looked_at: dict[str, float] = {}

    async def changed(self, service: Service, topics: frozenset[str]) -> set[str]:
        """The topics that are not as they were. One that is new is as it is."""
        found: set[str] = set()
        now = time.monotonic()
        async with service.database.acting(WATCHING, within=PATIENCE) as connection:
            for name, probe in self.PROBES.items():
                asked = {
                    topic: probe.key_of(topic) for topic in topics if topic.split(":")[0] == name
                }
                if asked and now - self._looked_at.get(name, 0) >= probe.every:
                    self._looked_at[name] = now
                    found |= await self._look(connection, probe, asked)
        for gone in self._prints.keys() - topics:
            del self._prints[gone]
        return found

    async def _look(self, connection: Connection, probe: Probe, asked: dict[str, str]) -> set[str]:
        args = (sorted(set(asked.values())),) if "$1" in probe.sql else ()
        rows = await send(connection, Call(probe.sql, args))
        prints = {row["key"]: row["print"] for row in rows}
        changed = set()
        for topic, key in asked.items():
            new = prints.get(key)
            if topic in self._prints and self._prints[topic] != new:
                changed.add(topic)
            self._prints[topic] = new
        return changed
