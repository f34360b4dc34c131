"""/admin/alerts: what is wrong, who has seen it, who is told."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from fairlane import alerts
from fairlane.api.answers import answer, page_of, plain
from fairlane.api.here import Here
from fairlane.api.models.alerts import (
    Acknowledgement,
    AlertList,
    AlertOut,
    ChannelIn,
    ChannelList,
    ChannelOut,
    NotificationList,
    RuleChanges,
    RuleList,
    RuleOut,
    SilenceIn,
    SilenceList,
    SilenceOut,
)
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayOperate
from fairlane.api.problems import not_there
from fairlane.api.route import PREFIX, Route
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send

router = APIRouter(prefix=f"{PREFIX}/admin/alerts", tags=["admin"], route_class=Route)

Paged = Annotated[Page, Depends(page)]
Named = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$", description="Its name.")]
OfRule = Annotated[str, Query(min_length=1, max_length=63, pattern=r"^[a-z0-9_]*$")]
State = Literal["open", "pending", "firing", "acknowledged", "silenced", "resolved"]


@router.get("", response_model=AlertList, summary="List alerts, newest first")
async def list_alerts(
    who: MayOperate,
    here: Here,
    part: Paged,
    state: Annotated[State | None, Query(description="`open`: all that is not over.")] = None,
    rule: OfRule | None = None,
) -> Response:
    """Those that fire, those that somebody has seen, and those of the last 30 days."""
    call = Call(alerts.ALERTS, (state, rule, part.before, part.rows))
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, call)
    shown = [plain(row) for row in rows[part.offset :][: part.limit]]
    return page_of(shown, str(shown[-1]["id"]) if len(rows) == part.rows else None)


@router.get("/rules", response_model=RuleList, summary="List the rules of alerts")
async def list_rules(who: MayOperate, here: Here) -> Response:
    return await _all(who, here, alerts.RULES)


@router.get("/rules/{name}", response_model=RuleOut, summary="Show a rule")
async def show_rule(name: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await _one(connection, alerts.RULES, name, "rule"))


@router.patch("/rules/{name}", response_model=RuleOut, summary="Change a rule")
async def change_rule(name: Named, who: MayOperate, here: Here, body: RuleChanges) -> Response:
    """Only what is said changes; `channels` null is every channel that takes the severity."""
    changes = body.model_dump(exclude_unset=True)
    async with here.database.acting(who) as connection:
        await _one(connection, alerts.RULES, name, "rule")
        if changes:
            await send(connection, calls.set_alert_rule(name, changes))
        return answer(await _one(connection, alerts.RULES, name, "rule"))


@router.post("/rules/{name}/test", response_model=NotificationList, summary="Send a test")
async def test_rule(name: Named, who: MayOperate, here: Here) -> Response:
    """By the channels of the rule; answers what was sent, and by which jobs."""
    async with here.database.acting(who) as connection:
        rows = await send(connection, calls.test_alert(name))
    return page_of([{name: row[name] for name in alerts.TOLD} for row in rows])


@router.get("/channels", response_model=ChannelList, summary="List where notifications go")
async def list_channels(who: MayOperate, here: Here) -> Response:
    return await _all(who, here, alerts.CHANNELS)


@router.put("/channels/{name}", response_model=ChannelOut, summary="Add or change a channel")
async def set_channel(name: Named, who: MayOperate, here: Here, body: ChannelIn) -> Response:
    """A webhook has the settings of an `http` definition; a mail has `to`."""
    alerts.check_channel(body.kind, body.settings)
    async with here.database.acting(who) as connection:
        await send(connection, calls.set_alert_channel(name, body.model_dump()))
        return answer(await _one(connection, alerts.CHANNELS, name, "channel"))


@router.get("/silences", response_model=SilenceList, summary="List silences that hold")
async def list_silences(who: MayOperate, here: Here) -> Response:
    return await _all(who, here, alerts.SILENCES)


@router.post("/silences", status_code=201, response_model=SilenceOut, summary="Tell nobody")
async def silence(who: MayOperate, here: Here, body: SilenceIn) -> Response:
    """Of what fits the patterns, until then. What fires is still listed, as `silenced`."""
    call = calls.silence_alerts(body.rule, body.subject, body.until, body.reason)
    async with here.database.acting(who) as connection:
        ((made,),) = await send(connection, call)
        return answer(await _one(connection, alerts.SILENCES, made, "silence"), 201)


@router.delete("/silences/{silence_id}", response_model=SilenceOut, summary="End a silence")
async def end_silence(silence_id: UUID, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who) as connection:
        ended = await _one(connection, alerts.SILENCES, silence_id, "silence")
        await send(connection, calls.end_silence(silence_id))
    return answer(ended)


@router.get("/{alert_id}", response_model=AlertOut, summary="Show an alert")
async def show_alert(alert_id: UUID, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await _one(connection, alerts.ALERT, alert_id, "alert"))


@router.post("/{alert_id}/acknowledge", response_model=AlertOut, summary="Acknowledge an alert")
async def acknowledge(
    alert_id: UUID, who: MayOperate, here: Here, body: Acknowledgement | None = None
) -> Response:
    """Nobody is reminded of it any more; its end is told."""
    async with here.database.acting(who) as connection:
        await send(connection, calls.acknowledge_alert(alert_id, body.note if body else None))
        return answer(await _one(connection, alerts.ALERT, alert_id, "alert"))


async def _all(who: MayOperate, here: Here, query: str) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return page_of([_shown(row) for row in await send(connection, Call(query, (None,)))])


async def _one(connection: Connection, query: str, which: Any, what: str) -> dict[str, Any]:
    rows = await send(connection, Call(query, (which,)))
    if not rows:
        raise not_there(what)
    return _shown(rows[0])


def _shown(row: Any) -> dict[str, Any]:
    return plain(row, *(["settings"] if "settings" in row.keys() else []))  # noqa: SIM118
