"""/ops/alerts: what is wrong, who has seen it, what is watched and who is told."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from starlette.responses import Response

from fairlane import alerts
from fairlane.api.answers import plain
from fairlane.api.models.alerts import RuleChanges, SilenceIn
from fairlane.api.problems import not_there
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import FairlaneError
from fairlane.web.sent import Sent, read
from fairlane.web.visit import Visit
from fairlane.web.words import plural

OPEN = 200  # that are shown at once
PAST = 30
SPANS = (
    ("1h", "1 hour"),
    ("4h", "4 hours"),
    ("24h", "a day"),
    ("7d", "a week"),
    ("30d", "30 days"),
)
LASTS = {"1h": 1, "4h": 4, "24h": 24, "7d": 168, "30d": 720}  # hours


async def show(visit: Visit) -> Response:
    before = _id(visit.query("before")) if visit.query("before") else None
    async with visit.reading() as connection:
        found = await send(connection, Call(alerts.ALERTS, ("open", None, None, OPEN)))
        past = await send(connection, Call(alerts.ALERTS, ("resolved", None, before, PAST + 1)))
        rules = await send(connection, Call(alerts.RULES, (None,)))
        silences = await send(connection, Call(alerts.SILENCES, (None,)))
        channels = await send(connection, Call(alerts.CHANNELS, (None,)))
    return await visit.show(
        "alerts.html",
        firing=[row for row in found if row["state"] == "firing"],
        acknowledged=[row for row in found if row["state"] == "acknowledged"],
        silenced=[row for row in found if row["state"] == "silenced"],
        past=past[:PAST],
        next=past[PAST - 1]["id"] if len(past) > PAST else None,
        before=visit.query("before"),
        rules=rules,
        silences=silences,
        channels=[plain(row, "settings") for row in channels],
    )


async def acknowledge(visit: Visit) -> Response:
    note = visit.field("note").strip()[:2000] or None
    async with visit.here.database.acting(visit.who) as connection:
        call = calls.acknowledge_alert(_id(visit.part("alert")), note)
        await send(connection, call)
    return visit.done("Acknowledged: no more reminders; its end is told.", visit.back("alerts"))


async def silence_form(
    visit: Visit, sent: Sent | None = None, given: dict[str, str] | None = None, status: int = 200
) -> Response:
    async with visit.reading() as connection:
        rules = await send(connection, Call(alerts.RULES, (None,)))
    typed = given or dict(visit.request.query_params)
    return await visit.show(
        "silence.html",
        status,
        rules=[row["name"] for row in rules],
        rule=typed.get("rule", "*"),
        subject=typed.get("subject", "*"),
        spans=SPANS,
        sent=sent or Sent(),
    )


async def silence(visit: Visit) -> Response:
    given = visit.given
    hours = LASTS.get(given.get("lasts", ""), 1)
    async with visit.reading() as connection:
        (row,) = await send(connection, Call("select fairlane.clock()"))
    until = row[0] + timedelta(hours=hours)
    sent = read(SilenceIn, {**given, "until": until.isoformat()})
    if not sent.faults:
        values = sent.values
        try:
            async with visit.here.database.acting(visit.who) as connection:
                call = calls.silence_alerts(
                    values["rule"], values["subject"], until, values["reason"]
                )
                await send(connection, call)
        except FairlaneError as error:
            sent = sent.refused(error)
        else:
            return visit.done("Silenced: nobody is told of it until then.", visit.u("alerts"))
    return await silence_form(visit, sent, given, 422)


async def end_silence(visit: Visit) -> Response:
    async with visit.here.database.acting(visit.who) as connection:
        await send(connection, calls.end_silence(_id(visit.part("silence"))))
    return visit.done("The silence is over; what fires is told again.", visit.back("alerts"))


async def rule(visit: Visit, sent: Sent | None = None, status: int = 200) -> Response:
    name = visit.part("rule")
    async with visit.reading() as connection:
        found = await _rule(connection, name)
        channels = await send(connection, Call(alerts.CHANNELS, (None,)))
        call = Call(alerts.ALERTS, (None, name, None, 20))
        lately = await send(connection, call)
    return await visit.show(
        "alert_rule.html",
        status,
        rule=found,
        channels=[plain(row, "settings") for row in channels],
        lately=lately,
        sent=sent or Sent(),
    )


async def save_rule(visit: Visit) -> Response:
    name = visit.part("rule")
    given = visit.given
    # One box for each channel; none of them is every channel that takes the severity.
    given["channels"] = ",".join(visit.fields("channel"))
    sent = read(RuleChanges, given)
    if not sent.faults:
        try:
            async with visit.here.database.acting(visit.who) as connection:
                now = await _rule(connection, name)
                changes = sent.changes(now)
                if changes:
                    await send(connection, calls.set_alert_rule(name, changes))
        except FairlaneError as error:
            sent = sent.refused(error)
        else:
            said = f"Saved: {', '.join(changes)}." if changes else "As it was."
            return visit.done(said.replace("_", " "), visit.u("alert_rule", name))
    return await rule(visit, sent, 422)


async def test_rule(visit: Visit) -> Response:
    name = visit.part("rule")
    async with visit.here.database.acting(visit.who) as connection:
        told = await send(connection, calls.test_alert(name))
    by = ", ".join(row["channel"] for row in told)
    said = f"A test of {name} went out by {by}." if told else f"No channel takes {name}."
    wrong = [row["error"] for row in told if row["error"]]
    if wrong:
        said += f" {plural(len(wrong), 'of them', 'of them')} failed: {wrong[0]}"
    return visit.done(said, visit.back("alert_rule", name))


async def _rule(connection: Connection, name: str) -> dict[str, Any]:
    rows = await send(connection, Call(alerts.RULES, (name,)))
    if not rows:
        raise not_there("rule")
    return plain(rows[0])


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise not_there("alert") from None
