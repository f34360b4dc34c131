"""/ops/fairness: each tenant's share against what it is entitled to, and what other weights would
make of it."""

from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from fairlane.api.admin import tenants
from fairlane.api.problems import Problem
from fairlane.web import fairness, samples
from fairlane.web.visit import Visit
from fairlane.web.words import plural

TRIED = "w."  # of a field: the weight of the tenant that follows
SLICE = timedelta(minutes=5)
STEPS = 96


async def show(visit: Visit) -> Response:
    given, faults = _weights(dict(visit.request.query_params))
    span = samples.Span.of(visit.query("range"), visit.now)
    async with visit.reading() as connection:
        shares = await fairness.shares_of(connection, given)
        steps = await samples.of_queue(connection, span, visit.prefs.tz)
        ticks = _ticks(span)
        waits = await fairness.waits_of(connection, [each.slug for each in shares], ticks)
    tried = {
        each.slug: given[each.slug]
        for each in shares
        if each.slug in given and given[each.slug] != each.weight
    }
    form = "%H:%M" if span.name != "7d" else "%a %H:%M"
    return await visit.show(
        "fairness.html",
        shares=shares,
        jain=fairness.jain(shares),
        steps=steps,
        span=span,
        ranges=samples.RANGES,
        waits=waits,
        wait_ticks=[each.astimezone(visit.prefs.tz).strftime(form) for each in ticks],
        given=given,
        tried=tried,
        faults=faults,
        shown=fairness.SHOWN,
        minutes=fairness.MINUTES,
    )


def _ticks(span: samples.Span) -> list[datetime]:
    """Starts of slices, at most 96 of them: whole slices of five minutes each."""
    step = SLICE * max(1, -(-(span.until - span.since) // (SLICE * STEPS)))
    first = datetime.fromtimestamp(
        span.since.timestamp() // SLICE.total_seconds() * SLICE.total_seconds(), UTC
    )
    count = int((span.until - first) / step) + 1
    return [first + step * number for number in range(count)]


def _weights(given: dict[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """What is tried, by tenant; and what of it is no weight."""
    found: dict[str, float] = {}
    faults: dict[str, str] = {}
    for name, text in given.items():
        if not name.startswith(TRIED) or not text.strip() or len(found) >= fairness.SHOWN:
            continue
        slug = name.removeprefix(TRIED).replace("\x00", "")
        try:
            weight = float(text)
        except ValueError:
            weight = 0.0
        if 0 < weight <= 1000:
            found[slug] = weight
        else:
            faults[slug] = "must be a number above 0 and at most 1000"
    return found, faults


async def weigh(visit: Visit) -> Response:
    """Make it so: each tenant gets a weight of its own, all or none."""
    wanted, faults = _weights(visit.given)
    if faults or not wanted:
        said = "; ".join(f"weight of {slug} {why}" for slug, why in faults.items())
        raise Problem(422, said or "give the weight of one tenant or more", "invalid")
    async with visit.here.database.acting(visit.who) as connection:
        for slug, weight in sorted(wanted.items()):
            await tenants.change(connection, slug, {"weight": weight})
    said = f"{plural(len(wanted), 'tenant')} weighed anew; it holds from the next start on."
    return visit.done(said, visit.u("fairness"))
