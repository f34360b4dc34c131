"""A small world with something for every verb to do, which can be put back as it was, fast."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from fairlane.core import calls, json
from fairlane.ids import uuid7
from fairlane.scheduler import store
from faults.interleavings import told
from support.clock import Clock
from support.core import Core, Lease

# What verbs change rows of, and what they add rows to and take rows from; children first.
SETTINGS = {"trigger": "id", "definition": "id", "tenant": "id", "queue": "name", "plan": "name"}
TABLES = [
    *("arrival", "lane", "gate", "share", "job", "dead_letter", "history", "attempt", "worker"),
    "claimed",
    *("doorbell", "sweep", "event", "emission", "delivery", "firing", "recent", "audit"),
]

OLD = """
insert into fairlane.history (id, tenant_id, definition_id, queue, status, priority, payload,
  scheduled_for, created_at, finished_at, attempt, forgiven, lost, max_attempts, source, replays,
  kept_days)
select $1, tenant_id, definition_id, 'bulk', 'succeeded', priority, payload, scheduled_for,
       created_at, fairlane.clock() - interval '40 days', 1, 0, 0, max_attempts, source, 0, 7
  from fairlane.job where id = $2
"""


@dataclass
class World:
    core: Core
    tenant: str = "acme"
    other: str = "beta"
    kind: str = "kind"
    jobs: dict[str, UUID] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    workers: dict[str, UUID] = field(default_factory=dict)
    events: dict[str, str] = field(default_factory=dict)
    new: UUID = field(default_factory=uuid7)
    restored: int = 0

    @classmethod
    async def make(cls, core: Core, clock: Clock) -> "World":
        """One place is left at each gate: whoever comes second has to find it taken."""
        world = cls(core)
        clock.freeze()
        await core.a_tenant(world.tenant, max_running=5)
        await core.a_tenant(world.other)
        await core.a_definition(world.kind, max_running=4, max_attempts=2)
        await core.a_definition("plain")
        await core.a_definition("long", timeout_seconds=5)
        world.workers = {
            "alive": await core.a_worker(100_000),
            "other": await core.a_worker(100_000),
            "dead": await core.a_worker(15),
            "gone": await core.a_worker(100_000),
        }
        await core.conn.executemany(
            "update fairlane.worker set name = $2 where id = $1",
            [(worker, name) for name, worker in world.workers.items()],
        )
        await world._triggers(clock)
        await world._jobs(clock)
        await world._past()
        clock.advance(seconds=20)
        await world._keep()
        return world

    async def _triggers(self, clock: Clock) -> None:
        """A schedule that comes due, and an event that waits to be dispatched."""
        named = {"label": "by itself", "definition_key": "plain"}
        await store.create(
            self.core.conn,
            self.tenant,
            named | {"trigger_type": "schedule", "cron_expr": "* * * * *", "timezone": "UTC"},
        )
        due = clock.now() + timedelta(seconds=5)
        await self.core.fetch(
            "update fairlane.trigger "
            "set next_at = date_trunc('minute', $1::timestamptz), due_at = $1 "
            "where chore is null",
            due,
        )
        await store.create(
            self.core.conn,
            self.tenant,
            named
            | {
                "trigger_type": "event",
                "event_name": "thing.done",
                "dedupe_window_seconds": 600,
                "payload_template": {"thing": "{{ event.data.thing }}"},
            },
        )
        event = {"tenant": self.tenant, "name": "thing.done", "data": {"thing": 1}, "id": "first"}
        await self.core.send(calls.emit([event]))

    async def _jobs(self, clock: Clock) -> None:
        core, tenant, kind = self.core, self.tenant, self.kind
        await self._die("parked")
        await self._run("ended", "alive")
        await core.finish(self.leases["ended"])
        for name, worker in (("running", "alive"), ("lost", "dead"), ("finishing", "alive")):
            await self._run(name, worker)
        await self._run("stuck", "other", definition="long")
        soon, late = clock.now() + timedelta(seconds=10), clock.now() + timedelta(seconds=1000)
        self.jobs["due"] = await core.enqueue(tenant, kind, scheduled_for=soon)
        self.jobs["later"] = await core.enqueue(tenant, kind, scheduled_for=late)
        self.jobs["queued"] = await core.enqueue(tenant, kind)
        self.jobs["keyed"] = await core.enqueue(tenant, kind, dedupe_key="key")
        self.jobs["theirs"] = await core.enqueue(self.other, kind)
        await core.sweep()
        self.jobs["unswept"] = await core.enqueue(tenant, kind)

    async def _run(self, name: str, worker: str, definition: str | None = None) -> None:
        self.jobs[name] = await self.core.enqueue(self.tenant, definition or self.kind)
        self.leases[name] = await self.core.claim_one(self.workers[worker])

    async def _die(self, name: str) -> None:
        self.jobs[name] = await self.core.enqueue(self.tenant, self.kind, max_attempts=1)
        lease = await self.core.claim_one(self.workers["alive"])
        assert await self.core.fail(lease) == "dead_letter"

    async def _past(self) -> None:
        """A job and a worker whose retention is over, and the day on which both were counted."""
        self.jobs["old"] = uuid7()
        await self.core.fetch(OLD, self.jobs["old"], self.jobs["queued"])
        await self.core.fetch(
            "update fairlane.worker set state = 'stopped', "
            "stopped_at = fairlane.clock() - interval '40 days' where id = $1",
            self.workers["gone"],
        )
        await self.core.fetch(
            "insert into fairlane.slice (starts_at, ends_at, count_at, is_final) "
            "values (fairlane.clock(), fairlane.clock(), fairlane.clock(), true)"
        )

    async def _keep(self) -> None:
        await self.core.conn.execute("create schema world")
        await told.record(self.core)
        columns = await self._columns()
        for table in (*SETTINGS, *TABLES):
            await self.core.conn.execute(
                f"create table world.{table} as select * from fairlane.{table}"
            )
        steps = [f"delete from fairlane.{table};" for table in TABLES]
        for table, key in SETTINGS.items():
            names = columns[table]
            steps.append(
                f"update fairlane.{table} t set ({names}) = (select {names} from world.{table} k "
                f"where k.{key} = t.{key}) from world.{table} w "
                f"where w.{key} = t.{key} and w::text <> t::text;"
            )
        # A lane stands in a share.
        for table in reversed(TABLES):
            names = columns[table]
            steps.append(
                f"insert into fairlane.{table} ({names}) overriding system value "
                f"select {names} from world.{table};"
            )
        await self.core.conn.execute(
            "create function world.restore() returns void language plpgsql as $$ begin "
            "perform set_config('fairlane_test.restoring', 'yes', true);"
            + "".join(steps)
            + told.FORGET
            + " end $$"
        )
        await self.core.conn.execute("create table world.name (id uuid primary key, name text)")
        await self.core.conn.executemany(
            "insert into world.name values ($1, $2)",
            [(job, name) for name, job in self.jobs.items()],
        )
        await self.core.conn.execute(OUTCOME)
        await told.ask(self.core)

    async def _columns(self) -> Mapping[str, str]:
        rows = await self.core.fetch(
            "select c.relname as name, string_agg(a.attname, ', ' order by a.attnum) as columns "
            "from pg_class c join pg_attribute a on a.attrelid = c.oid "
            "where c.relnamespace = 'fairlane'::regnamespace and a.attnum > 0 "
            "and not a.attisdropped and a.attgenerated = '' group by c.relname"
        )
        return {row["name"]: row["columns"] for row in rows}

    async def restore(self) -> None:
        """Put everything back as it was made."""
        await self.core.conn.fetchval("select world.restore()")
        self.restored += 1
        if self.restored % 400 == 0:
            await self.core.conn.execute("vacuum")

    async def outcome(self) -> dict[str, Any]:
        """What there is now, times and virtual times aside."""
        found: dict[str, Any] = json.loads(await self.core.conn.fetchval("select world.outcome()"))
        return found


OUTCOME = """
create function world.outcome() returns jsonb language plpgsql as $$
begin
  perform fairlane.sweep();
  return jsonb_build_object(
    'jobs', (select jsonb_object_agg(name, what)
               from (select coalesce(n.name, 'new ' || row_number() over (
                                       partition by n.name
                                           order by j.status, j.source, j.queue)) as name,
                            jsonb_build_array(j.status, j.attempt, j.attempt_count,
                                              j.worker, j.replays, j.source, j.queue,
                                              j.cancel_requested_at is not null, d.status) as what
                       from fairlane.jobs j
                       left join world.name n on n.id = j.id
                       left join fairlane.dead_letter d on d.id = j.id) named),
    'gates', (select jsonb_object_agg(concat_ws(' ', g.scope, t.slug, g.queue, d.key),
                                      jsonb_build_array(g.capacity, g.running))
                from fairlane.gate g
                left join fairlane.tenant t on t.id = g.tenant_id
                left join fairlane.definition d on d.id = g.definition_id),
    'queued', (select sum(queued) from fairlane.lane),
    'paused', (select count(paused_at) from fairlane.tenant),
    'workers', (select jsonb_object_agg(name, state) from fairlane.worker),
    'waiting', (select count(*) from fairlane.emission),
    'delivered', (select jsonb_agg(status order by status) from fairlane.delivery),
    'fired', (select jsonb_agg(status order by status) from fairlane.firing),
    'events', (select count(*) from fairlane.event));
end
$$;
"""
