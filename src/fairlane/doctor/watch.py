"""What the installation says of itself: its self-audit, its alerts, its settings."""

import os

import asyncpg

from fairlane.doctor.verdict import Check, Verdict, fail, ok, warn

Connection = asyncpg.Connection

RUNBOOKS = "docs/operating/runbooks.md"


async def promises(conn: Connection) -> Check:
    """The self-audit's counts; a violation of the last week is trouble, an older one a warning."""
    rows = await conn.fetch(
        """
        select name, violations, last_seen::text as seen, last_violation_at,
               last_violation_at > fairlane.clock() - interval '7 days' as is_new
          from fairlane.promise where violations > 0 order by last_violation_at desc
        """
    )
    checked, late = await conn.fetchrow(
        "select sum(checked), extract(epoch from fairlane.clock() - max(last_checked_at))::float8"
        " from fairlane.promise"
    ) or (0, None)
    if rows:
        row = rows[0]
        found = (
            f"{row['name']} was broken {row['violations']} times, last at "
            f"{row['last_violation_at']:%Y-%m-%d %H:%M}: {row['seen']}"
        )
        step = f"select fairlane.regate(), and report it as a bug; {RUNBOOKS}, broken_promise"
        return (fail if row["is_new"] else warn)("self-audit", found, step)
    if late is None:
        return ok("self-audit", "no process has led yet; a worker or a scheduler does")
    return ok("self-audit", f"{checked:.0f} checks, no violation, the last {late:.0f} s ago")


async def alerts(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select state, severity, summary from fairlane.alerts
         where state in ('firing', 'acknowledged', 'silenced') and severity <> 'info'
         order by severity = 'critical' desc, state = 'firing' desc, since
        """
    )
    firing = [row for row in rows if row["state"] == "firing"]
    if not rows:
        return ok("alerts", "none fires")
    found = (
        f"{len(firing)} firing, {len(rows) - len(firing)} seen or silenced: {rows[0]['summary']}"
    )
    critical = any(row["severity"] == "critical" for row in firing)
    verdict = Verdict.FAIL if critical else Verdict.WARN
    return Check("alerts", verdict, found, f"fairlane alerts list; what to do: {RUNBOOKS}")


async def reach(conn: Connection) -> Check:
    """Whether calls may go anywhere, and whether they are signed."""
    calls = await conn.fetchval(
        "select count(*) from fairlane.definition where executor = 'http' and is_active"
    )
    if not calls:
        return ok("calls", "no http definition")
    missing = [
        name for name in ("FAIRLANE_HTTP_ALLOW", "FAIRLANE_SECRET_KEY") if not os.environ.get(name)
    ]
    if missing:
        found = f"{calls} http definitions, and {' and '.join(missing)} not set here"
        step = "set them where workers run: where calls may go, and what signs them"
        return warn("calls", found, step)
    return ok("calls", f"{calls} http definitions, allow-listed and signed")


async def delivery(conn: Connection) -> Check:
    """Whether news of alerts gets out."""
    rows = await conn.fetch(
        """
        select n.channel, n.error, d.last_error ->> 'message' as message
          from fairlane.notification n
          left join fairlane.dead_letter d on d.id = n.job_id and d.status = 'pending'
         where n.sent_at > fairlane.clock() - interval '1 day'
           and (n.error is not null or d.id is not null)
         order by n.sent_at desc
         limit 100
        """
    )
    if rows:
        why = rows[0]["error"] or rows[0]["message"] or "it ran out of attempts"
        found = f"{len(rows)} notifications of the last day did not get out by {rows[0]['channel']}"
        step = "look at: fairlane alerts channels, then try: fairlane alerts test dead_letters"
        return warn("notifications", f"{found}: {why}", step)
    return ok("notifications", "all got out, or are on their way")
