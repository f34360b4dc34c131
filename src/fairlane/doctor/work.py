"""The work: whether workers are there, and whether anything stands where it should not."""

import time
from datetime import UTC, datetime

import asyncpg

from fairlane.doctor.verdict import Check, fail, ok, warn

Connection = asyncpg.Connection


async def clock(conn: Connection) -> Check:
    asked = time.time()
    there: datetime = await conn.fetchval("select fairlane.clock()")
    here = datetime.fromtimestamp((asked + time.time()) / 2, UTC)
    apart = abs((there - here).total_seconds())
    if apart > 5:
        found = f"this machine and the database are {apart:.0f} s apart"
        return warn("clock", found, "let both follow a time server; the database's clock decides")
    return ok("clock", f"within {max(apart, 0.001):.3f} s of the database's")


async def workers(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select name, hostname, running,
               extract(epoch from fairlane.clock() - lease_expires_at)::float8 as late
          from fairlane.workers
         where state = 'lost' and stopped_at is null
         order by late desc
        """
    )
    if rows:
        name, host, _, late = rows[0]
        found = f"{len(rows)} stopped answering, {name} on {host or 'its host'} {late:.0f} s ago"
        # A live worker tidies up within seconds; that nobody has says that nobody is there.
        if late > 60 and any(row["running"] for row in rows):
            return fail("workers", f"{found}, and jobs of theirs wait", "fairlane worker")
        return warn("workers", found, "look at that machine; another worker takes over its jobs")
    live = await conn.fetchval("select count(*) from fairlane.workers where state = 'live'")
    return ok("workers", f"{live} live")


async def unserved(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select name, queued, slots from fairlane.queues
         where queued > 0 and worker_slots = 0 and paused_at is null
         order by position, name
        """
    )
    if rows:
        said = ", ".join(f"{row['queued']} queued in {row['name']}" for row in rows)
        queues = " ".join(f"--queue {row['name']}={row['slots']}" for row in rows)
        return warn("unserved queues", f"no live worker: {said}", f"fairlane worker {queues}")
    return ok("unserved queues", "none")


async def stuck(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select j.id
          from fairlane.running_jobs() j
          join fairlane.definition d on d.id = j.definition_id
          join fairlane.queue q on q.name = j.queue
         where j.started_at < fairlane.clock()
                 - 2 * make_interval(secs => coalesce(d.timeout_seconds, q.timeout_seconds))
         limit 1000
        """
    )
    if rows:
        found = f"{len(rows)} run for more than twice their timeout, {rows[0]['id']} among them"
        return warn("stuck jobs", found, "a live worker parks them within seconds; start one")
    return ok("stuck jobs", "none")


async def counters(conn: Connection) -> Check:
    rows = await conn.fetch("select what, id, counted, running from fairlane.miscounts limit 1000")
    if rows:
        what, which, counted, running = rows[0]
        found = f"{len(rows)} wrong: {what} {which} counts {counted} running, there are {running}"
        return fail("gate counters", found, "select fairlane.regate(), and report it as a bug")
    return ok("gate counters", "agree with what runs")


async def lanes(conn: Connection) -> Check:
    rows = await conn.fetch("select tenant, queue from fairlane.forgotten_lanes limit 1000")
    if rows:
        tenant, queue = rows[0]
        found = f"{len(rows)} with queued jobs and nobody coming: {tenant} in {queue}"
        return fail(
            "lanes",
            found,
            f"fairlane tenants resume {tenant}; if it stays, enqueue one more job there; "
            "and report it as a bug",
        )
    return ok("lanes", "all with work are awake")


async def orphans(conn: Connection) -> Check:
    """Lanes of a share, tenant or definition that is gone, and gates that nobody passes."""
    rows = await conn.fetch(
        """
        select l.id, l.queue, l.queued + l.scheduled + l.running as jobs
          from fairlane.lane l
         where not exists (select from fairlane.tenant t where t.id = l.tenant_id)
            or not exists (select from fairlane.share s where s.id = l.share_id)
            or not exists (select from fairlane.share_lock k where k.share_id = l.share_id)
            or (l.definition_id is not null
                and not exists (select from fairlane.definition d where d.id = l.definition_id))
            or exists (select from unnest(l.gates) g (id)
                        where not exists (select from fairlane.gate where gate.id = g.id))
         limit 1000
        """
    )
    if rows:
        found = (
            f"{len(rows)} lanes of what is gone, {rows[0]['id']} in {rows[0]['queue']} among them"
        )
        return fail("orphaned lanes", found, "select fairlane.regate(), and report it as a bug")
    return ok("orphaned lanes", "none")
