"""What an operator finds on the stage beside a tenant's work: samples of the past day, workers in
every state, alerts in every state, and names that somebody wrote who means harm."""

from uuid import uuid4

from fairlane.core import calls
from fairlane.core.connect import send
from support.core import Core
from web.stage import XSS, Stage

SAMPLES = """
insert into fairlane.sample (taken_at, queue, due, running, oldest_due_seconds, finished, failed,
                             start_p50_seconds, start_p95_seconds, fairness)
select at, q.name, greatest(0, (60 + 50 * sin(n / 40.0 + q.position)) / q.position)::bigint,
       8 / q.position, 4 + n % 9, 40, n % 7 / 6, 0.6 + n % 5 / 10.0,
       (9 + 6 * sin(n / 30.0)) / q.position, 0.88 + (n % 9) / 90.0
  from generate_series(0, 5760) n
 cross join lateral (select date_bin('15 seconds', fairlane.clock(), '2000-01-01')
                            - n * interval '15 seconds') t (at)
 cross join fairlane.queue q
 where n < 480 or n % 8 = 0
"""
TENANT_SAMPLES = """
insert into fairlane.tenant_sample (taken_at, tenant_id, queued, running, worker_seconds)
select at, t.id, greatest(0, 20 + 15 * sin(n / 20.0 + w.part))::bigint, w.part::bigint, w.part
  from generate_series(0, 240) n
 cross join lateral (select date_bin('15 seconds', fairlane.clock(), '2000-01-01')
                            - n * interval '15 seconds') s (at)
  join (values ('acme', 31), ('globex', 46), ('initech', 14), ('umbrella', 2)) w (slug, part)
    on true
  join fairlane.tenant t on t.slug = w.slug
"""
TALLIES = """
insert into fairlane.tally (starts_at, tenant_id, queue, definition_key, status, jobs, attempts,
                            run_seconds, wait_seconds, longest_seconds)
select date_bin('5 minutes', fairlane.clock(), '2000-01-01') - n * interval '5 minutes', t.id,
       'default', 'email.send', s.status, s.jobs, s.jobs, s.jobs * 2,
       s.jobs * (1 + w.waits * (1 + sin(n / 3.0 + w.waits))), 9
  from generate_series(0, 14) n
  join (values ('acme', 1.0), ('globex', 2.0), ('initech', 4.0)) w (slug, waits) on true
  join fairlane.tenant t on t.slug = w.slug
 cross join (values ('succeeded', 40), ('failed', 2)) s (status, jobs)
    on conflict do nothing
"""
LOST = """
update fairlane.worker set last_seen_at = fairlane.clock() - interval '94 seconds',
       lease_expires_at = fairlane.clock() - interval '64 seconds' where name = 'wk-02be'
"""
SILENT = """
update fairlane.worker set last_seen_at = fairlane.clock() - interval '45 minutes',
       lease_expires_at = fairlane.clock() + interval '15 minutes' where name = 'wk-91cc'
"""
ALERTS = """
insert into fairlane.alert (rule, subject, state, severity, value, threshold, since, fired_at,
                            acknowledged_at, acknowledged_by, note, resolved_at)
select rule, subject, state, severity, value, threshold, fairlane.clock() - interval '10 minutes',
       fairlane.clock() - interval '6 minutes',
       case when state = 'acknowledged' then fairlane.clock() end,
       case when state = 'acknowledged' then 'token:ada' end,
       case when state = 'acknowledged' then $1 end,
       case when state = 'resolved' then fairlane.clock() - interval '2 minutes' end
  from (values ('queue_backlog', 'default', 'firing', 'warning', 1204, 1000),
               ('worker_lost', 'wk-02be', 'firing', 'critical', 1, 0),
               ('dead_letters', 'acme', 'acknowledged', 'warning', 61, 50),
               ('tenant_limit', 'globex/default', 'resolved', 'info', 1, 0),
               ('no_worker', 'bulk', 'resolved', 'critical', 3, 0))
       a (rule, subject, state, severity, value, threshold)
"""


async def furnish(core: Core, stage: Stage) -> None:
    for sql in (SAMPLES, TENANT_SAMPLES, TALLIES):
        await core.fetch(sql)
    await _workers(core, stage)
    await core.fetch(ALERTS, XSS)
    await core.send(calls.set_tenant("umbrella", {"name": XSS}))
    await core.send(calls.create_tenant("oddly", "free", XSS, {"weight": 2.5}))
    stage.names["definition"] = str(
        await core.one("select id from fairlane.definition where key = 'odd.kind'")
    )


async def _workers(core: Core, stage: Stage) -> None:
    for name, queues, kinds in (
        ("wk-91cc", {"default": 16}, ["email.send", "sync_crm"]),
        ("wk-02be", {"default": 8, "bulk": 2}, ["email.send"]),
        ("wk-d410", {"bulk": 4}, [XSS]),
    ):
        worker = uuid4()
        call = calls.register_worker(
            worker,
            name,
            queues,
            hostname=f"node-{name[-2:]}",
            version="1.4.2" if name == "wk-91cc" else "1.4.1",
            lease_seconds=3600,
            metadata={"definitions": kinds},
        )
        await send(core.conn, call)
        if name == "wk-91cc":
            await core.flood("globex", "email.send", 3)
            await core.claim(worker, 3)
            stage.names["worker"] = str(worker)
        if name == "wk-d410":
            await core.heartbeat(worker, draining=True)
    for sql in (LOST, SILENT):
        await core.fetch(sql)
