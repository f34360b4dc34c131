"""/ops/tenants: customers, how they do, and what is theirs; one tenant."""

from typing import Any

from starlette.responses import Response

from fairlane.api.admin import tenants
from fairlane.api.answers import plain
from fairlane.api.models.tenants import TenantChanges, TenantIn
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import FairlaneError
from fairlane.web import samples
from fairlane.web.sent import Sent, read, saved
from fairlane.web.undoing import Undo
from fairlane.web.visit import Visit

ROWS = 50
COUNTED = 100
LIMITS = ("weight", "max_running", "starts_per_minute", "max_backlog", "backlog_policy")

# Each figure is bounded: counters, an hour of tallies, the newest rows of an index.
TENANTS = f"""
select t.*, y.finished, y.failed, d.dead, a.last_at
  from (select * from fairlane.tenants
         where slug > $1
           and ($2 = '' or position($2 in slug) > 0 or position($2 in lower(name)) > 0)
           and ($3 = '' or plan = $3)
         order by slug limit $4) t
  left join lateral (
         select sum(jobs)::bigint as finished,
                (sum(jobs) filter (where status in ('failed', 'dead_letter')))::bigint as failed
           from fairlane.tally
          where tenant_id = t.id and starts_at > fairlane.clock() - interval '65 minutes') y on true
  left join lateral (
         select count(*)::int as dead
           from (select from fairlane.dead_letter
                  where tenant_id = t.id and status = 'pending' limit {COUNTED}) n) d on true
  left join lateral (
         select greatest(
                  (select created_at from fairlane.job
                    where tenant_id = t.id order by id desc limit 1),
                  (select finished_at from fairlane.history
                    where tenant_id = t.id order by id desc limit 1)) as last_at) a on true
 order by t.slug
"""  # noqa: S608 - a number of ours
PLANS = "select * from fairlane.plan order by max_running nulls last, name"


async def show(visit: Visit, sent: Sent | None = None, status: int = 200) -> Response:
    words, plan = visit.query("q").strip().lower()[:100], visit.query("plan")
    args = (visit.query("after"), words, plan, ROWS + 1)
    async with visit.reading() as connection:
        rows = await send(connection, Call(TENANTS, args))
        plans = await _plans(connection)
    return await visit.show(
        "tenants.html",
        status,
        tenants=[plain(row, "overrides") for row in rows[:ROWS]],
        next=rows[ROWS - 1]["slug"] if len(rows) > ROWS else None,
        after=visit.query("after"),
        q=visit.query("q"),
        plan=plan,
        plans=plans,
        counted=COUNTED,
        sent=sent or Sent(),
    )


async def _plans(connection: Connection) -> list[dict[str, Any]]:
    return [dict(row) for row in await send(connection, Call(PLANS))]


async def create(visit: Visit) -> Response:
    sent = read(TenantIn, visit.given)
    if not sent.faults:
        values = dict(sent.values)
        slug, plan, name = (values.pop(each, None) for each in ("slug", "plan", "name"))
        try:
            async with visit.here.database.acting(visit.who) as connection:
                await tenants.add(connection, slug, plan, name, values)
        except FairlaneError as error:
            sent = sent.refused(error)
        else:
            return visit.done(f"Tenant {slug} is there.", visit.u("tenant", slug))
    return await show(visit, sent, 422)


DEAD = f"""
select count(*)::int from (select from fairlane.dead_letter
                            where tenant_id = $1 and status = 'pending' limit {COUNTED}) n
"""  # noqa: S608
QUEUES = """
select queue, sum(queued)::bigint as queued, sum(scheduled)::bigint as scheduled,
       sum(running)::bigint as running
  from fairlane.lane_counts where tenant_id = $1
 group by queue having sum(queued) + sum(scheduled) + sum(running) > 0 order by 2 desc, 1
"""


async def one(visit: Visit, sent: Sent | None = None, status: int = 200) -> Response:
    slug = visit.part("slug")
    span = samples.Span.of(visit.query("range"), visit.now)
    async with visit.reading() as connection:
        tenant = await tenants.the_tenant(connection, slug)
        plans = await _plans(connection)
        steps = await samples.of_tenant(connection, span, visit.prefs.tz, tenant["id"])
        (dead,) = await send(connection, Call(DEAD, (tenant["id"],)))
        queues = await send(connection, Call(QUEUES, (tenant["id"],)))
    return await visit.show(
        "tenant.html",
        status,
        who=tenant,
        plans=plans,
        plan=next(each for each in plans if each["name"] == tenant["plan"]),
        steps=steps,
        span=span,
        ranges=samples.RANGES,
        dead=dead[0],
        counted=COUNTED,
        queues=queues,
        sent=sent or Sent(),
    )


async def save(visit: Visit) -> Response:
    """A limit that is left empty is the plan's."""
    slug = visit.part("slug")
    given = visit.given
    sent = read(TenantChanges, {**given, "name": given.get("name", "")})
    if not sent.faults:
        try:
            async with visit.here.database.acting(visit.who) as connection:
                now = await tenants.the_tenant(connection, slug)
                own = {**dict.fromkeys(LIMITS), **now["overrides"]}
                values = {**sent.values, "name": sent.values.get("name") or ""}
                changes = Sent(values=values).changes({**now, **own})
                await tenants.change(connection, slug, changes)
        except FairlaneError as error:
            sent = sent.refused(error)
        else:
            return visit.done(saved(changes), visit.u("tenant", slug))
    return await one(visit, sent, 422)


async def pause(visit: Visit) -> Response:
    return await _set_paused(visit, True)


async def resume(visit: Visit) -> Response:
    return await _set_paused(visit, False)


async def _set_paused(visit: Visit, is_paused: bool) -> Response:
    slug = visit.part("slug")
    async with visit.here.database.acting(visit.who) as connection:
        await tenants.pause(connection, slug, is_paused)
    said = (
        f"{slug} is suspended: nothing more of it starts, what runs goes on."
        if is_paused
        else f"{slug} goes on."
    )
    undo = Undo("tenant_resume" if is_paused else "tenant_pause", (slug,))
    return visit.done(said, visit.back("tenant", slug), undo)
