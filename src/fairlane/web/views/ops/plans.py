"""/ops/plans: named sets of limits. A change is looked at before it is made: the form is a GET, and
what it comes to is shown with a button that makes it so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from fairlane.api.admin import plans
from fairlane.api.answers import plain
from fairlane.api.models.tenants import PlanChanges, PlanIn
from fairlane.api.problems import Problem
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import FairlaneError
from fairlane.web.sent import Sent, read
from fairlane.web.visit import Visit
from fairlane.web.words import plural

FIELDS = {
    "max_running": "Running at once",
    "starts_per_minute": "Starts a minute",
    "max_backlog": "Backlog",
    "backlog_policy": "Above the backlog",
    "weight": "Weight",
    "retention_days": "Days kept",
}
POLICIES = {"warn": "accept, and warn", "reject": "refuse"}

# Of the plan's tenants: how many have a limit of their own, which the plan's does not touch.
OWN = """
select count(*)::int as tenants, count(max_running)::int as max_running,
       count(starts_per_minute)::int as starts_per_minute, count(max_backlog)::int as max_backlog,
       count(backlog_policy)::int as backlog_policy, count(weight)::int as weight,
       0 as retention_days
  from fairlane.tenant where plan = $1
"""
OVER = """
select count(*)::int from fairlane.tenants
 where plan = $1 and not overrides ? 'max_running' and running > $2
"""


@dataclass(frozen=True)
class Change:
    """One line of the preview."""

    label: str
    before: str
    after: str
    effect: str


async def show(visit: Visit, sent: Sent | None = None, status: int = 200) -> Response:
    async with visit.reading() as connection:
        rows = await send(connection, Call(plans.PLANS, (None,)))
    found = [plain(row) for row in rows]
    return await visit.show(
        "plans.html", status, plans=found, policies=POLICIES, sent=sent or Sent()
    )


async def create(visit: Visit) -> Response:
    sent = read(PlanIn, visit.given)
    if not sent.faults:
        limits = {key: value for key, value in sent.values.items() if key != "name"}
        try:
            async with visit.here.database.acting(visit.who) as connection:
                made = await plans.add(connection, sent.values["name"], limits)
        except FairlaneError as error:
            sent = sent.refused(error)
        else:
            return visit.done(f"Plan {made['name']} is there.", visit.u("plan", made["name"]))
    return await show(visit, sent, 422)


TENANTS = "select slug, name from fairlane.tenant where plan = $1 order by slug limit 51"


async def one(visit: Visit) -> Response:
    """With fields in the query: what they would change."""
    name = visit.part("plan")
    sent = read(PlanChanges, dict(visit.request.query_params))
    async with visit.reading() as connection:
        plan = await plans.the_plan(connection, name)
        changes = {} if sent.faults else sent.changes(plan)
        preview = await _preview(connection, plan, changes)
        tenants = await send(connection, Call(TENANTS, (name,)))
    return await visit.show(
        "plan.html",
        plan=plan,
        sent=sent,
        asked=bool(sent.typed),
        changes=changes,
        preview=preview,
        tenants=tenants[:50],
        more=len(tenants) > 50,
    )


async def save(visit: Visit) -> Response:
    """What was previewed, if the plan is still what it was then."""
    name = visit.part("plan")
    sent = read(PlanChanges, visit.given)
    if sent.faults:
        raise Problem(422, "; ".join(f"{FIELDS[k]} {v}" for k, v in sent.faults.items()), "invalid")
    async with visit.here.database.acting(visit.who) as connection:
        now = await plans.the_plan(connection, name)
        if visit.field("seen") != now["updated_at"].isoformat():
            detail = f"plan {name} was changed by somebody else since you looked at it"
            raise Problem(409, detail, "changed")
        changes = sent.changes(now)
        await plans.change(connection, name, changes)
    said = (
        f"Saved; it holds at once for {plural(now['tenants'], 'tenant')}."
        if changes
        else "As it was."
    )
    return visit.done(said, visit.u("plan", name))


async def _preview(
    connection: Connection, plan: Mapping[str, Any], changes: Mapping[str, Any]
) -> Sequence[Change]:
    if not changes:
        return ()
    (own,) = await send(connection, Call(OWN, (plan["name"],)))
    over = 0
    if changes.get("max_running") is not None:
        args = (plan["name"], changes["max_running"])
        over = (await send(connection, Call(OVER, args)))[0][0]
    return [
        Change(
            FIELDS[name],
            _said(name, plan[name]),
            _said(name, value),
            _effect(name, dict(own), over),
        )
        for name, value in changes.items()
    ]


def _said(name: str, value: Any) -> str:
    if value is None:
        return "no limit"
    return POLICIES[value] if name == "backlog_policy" else f"{value:g}"


def _effect(name: str, own: Mapping[str, Any], over: int) -> str:
    touched = own["tenants"] - own[name]
    said = plural(touched, "tenant")
    if own[name]:
        said += f"; {own[name]:,} {'has' if own[name] == 1 else 'have'} their own and keep it"
    if name == "max_running" and over:
        said += f"; {over:,} of them {'runs' if over == 1 else 'run'} more now: "
        said += "nothing is stopped, new starts wait"
    if name == "retention_days":
        said += "; jobs that ended before keep the days they were given"
    return said
