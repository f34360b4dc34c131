"""/t/{tenant}/triggers/new and /{trigger}/edit: write a trigger, see what it would do, save it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

from starlette.responses import Response

from fairlane.api.problems import Problem
from fairlane.api.triggers import the_trigger
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import Fault, TriggerInvalid
from fairlane.ids import parse_id
from fairlane.scheduler import store, trial
from fairlane.scheduler.check import DEFAULTS, EVENT_WINDOW
from fairlane.scheduler.cron import Cron, CronInvalid
from fairlane.scheduler.trigger import Trigger
from fairlane.web.forms.inputs import pretty
from fairlane.web.forms.reading import json_of
from fairlane.web.schedules import in_words
from fairlane.web.views.account import zones
from fairlane.web.views.trigger import TIMES, event_of, tried_of
from fairlane.web.visit import Visit

WHOLE = ("dedupe_window_seconds", "jitter_seconds")
DOCUMENTS = ("filter", "payload_template")
WORDS = {
    "schedule": ("cron_expr", "timezone", "missed", "overlap"),
    "event": ("event_name",),
}
SHARED = ("label", "definition_key", "version")
KINDS = "select distinct key from fairlane.definition where is_active order by key limit 500"


@dataclass
class Draft:
    """A trigger that somebody is writing: each field as text, and what is wrong with it."""

    kind: str
    values: Mapping[str, str] = field(default_factory=dict)
    is_enabled: bool = True
    old: Trigger | None = None
    revision: int = 0
    faults: Sequence[Fault] = ()
    said: str = ""
    tried: dict[str, Any] | None = None

    @classmethod
    def of(cls, trigger: Trigger) -> "Draft":
        values = {name: getattr(trigger, name) for name in _names(trigger.trigger_type)}
        texts = {
            name: ("" if value is None else pretty(value) if name in DOCUMENTS else str(value))
            for name, value in values.items()
        }
        return cls(trigger.trigger_type, texts, trigger.is_enabled, trigger, trigger.revision)

    @classmethod
    def blank(cls, kind: str) -> "Draft":
        values = {"payload_template": "{}", "dedupe_window_seconds": str(EVENT_WINDOW)}
        if kind == "schedule":
            values = {
                **{name: str(DEFAULTS[name]) for name in ("missed", "overlap", "jitter_seconds")},
                "cron_expr": "0 3 * * *",
                "timezone": "UTC",
                "payload_template": "{}",
                "dedupe_window_seconds": "0",
            }
        return cls(kind, values)

    def of_field(self, name: str) -> list[str]:
        """What is wrong with a field, and inside it."""
        here = f"/{name}"
        return [
            fault.message if fault.pointer == here else f"{_rest(fault, here)}: {fault.message}"
            for fault in self.faults
            if fault.pointer == here or fault.pointer.startswith(f"{here}/")
        ]

    @property
    def elsewhere(self) -> list[Fault]:
        """What is wrong with no field of the form."""
        known = {*_names(self.kind), "is_enabled"}
        return [each for each in self.faults if each.pointer.strip("/").split("/")[0] not in known]


def _rest(fault: Fault, here: str) -> str:
    return fault.pointer.removeprefix(here)


def _names(kind: str) -> tuple[str, ...]:
    extra = ("jitter_seconds",) if kind == "schedule" else ("filter",)
    return (*SHARED, *WORDS[kind], "payload_template", "dedupe_window_seconds", *extra)


@dataclass(frozen=True)
class Times:
    """What a cron expression means: in words, the next times, or why it means nothing."""

    words: str = ""
    zone: str = "UTC"
    times: Sequence[datetime] = ()
    fault: str = ""

    @classmethod
    def of(cls, expression: str, zone: str, now: datetime) -> "Times":
        try:
            cron = Cron.read(expression, zone or "UTC")
        except CronInvalid as error:
            return cls(fault=str(error))
        return cls(in_words(expression), zone or "UTC", list(islice(cron.times(now), TIMES)))


async def new(visit: Visit) -> Response:
    """Empty, as a copy of `from`, or for events like `sample`."""
    draft = Draft.blank("event" if visit.query("type") == "event" else "schedule")
    async with visit.reading() as connection:
        sample = await event_of(connection, visit)
        if visit.query("from"):
            found = await the_trigger(connection, visit.who, parse_id(visit.query("from")))
            draft = replace(Draft.of(found), old=None, revision=0)
            draft.values = {**draft.values, "label": f"{found.label[:190]} (copy)"}
        elif sample is not None:
            draft = _like(sample)
    return await _form(visit, draft)


def _like(event: Mapping[str, Any]) -> Draft:
    """For events of this name, with each member of its data in the payload."""
    names = [name for name in event["data"] if _is_plain(name)][:20]
    template = {name: f"{{{{event.{name}}}}}" for name in names}
    blank = Draft.blank("event")
    said = {"event_name": event["name"], "payload_template": pretty(template)}
    return replace(blank, values={**blank.values, **said})


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("_", "").replace("-", "").isalnum()


async def edit(visit: Visit) -> Response:
    async with visit.reading() as connection:
        trigger = await the_trigger(connection, visit.who, parse_id(visit.part("trigger")))
    return await _form(visit, Draft.of(trigger))


async def _form(visit: Visit, draft: Draft, status: int = 200) -> Response:
    async with visit.reading() as connection:
        kinds = [row["key"] for row in await send(connection, Call(KINDS))]
    times = None
    if draft.kind == "schedule":
        said = draft.values
        times = Times.of(said.get("cron_expr", ""), said.get("timezone", ""), visit.now)
    return await visit.show(
        "trigger_form.html", status, draft=draft, kinds=kinds, zones=sorted(zones()), times=times
    )


async def save(visit: Visit) -> Response:
    """Save, or only show what it would do: its next times, what it makes of the latest events."""
    draft, written = _posted(visit)
    saved = None
    try:
        async with visit.here.database.acting(visit.who) as connection:
            if visit.field("id"):
                draft.old = await the_trigger(connection, visit.who, parse_id(visit.field("id")))
            if draft.faults:
                raise TriggerInvalid("the trigger is refused", draft.faults)
            if visit.field("do") == "try":
                draft.tried = await _tried(visit, connection, written)
            elif not _is_stale(draft, visit):
                saved = await _saved(visit, connection, draft, written)
    except TriggerInvalid as error:
        draft.faults = error.faults
        if visit.field("do") != "try":
            draft.said = "Nothing is saved; what is wrong stands at its field."
        return await _form(visit, draft, 200 if visit.wants else 422)
    if saved is None:
        return await _form(visit, draft, 409 if draft.said else 200)
    return visit.done(f"“{saved.label}” is saved.", visit.u("trigger", visit.tenant, saved.id))


async def _saved(
    visit: Visit, connection: Connection, draft: Draft, written: dict[str, Any]
) -> Trigger:
    if draft.old is None:
        return await store.create(connection, visit.tenant, written)
    return await store.change(connection, draft.old, written, visit.tenant)


async def _tried(
    visit: Visit, connection: Connection, written: dict[str, Any]
) -> dict[str, Any] | None:
    assert visit.who.tenant_id is not None
    found = await trial.unsaved(connection, visit.who.tenant_id, written)
    return await tried_of(connection, visit, found)


def _is_stale(draft: Draft, visit: Visit) -> bool:
    """Whether somebody has changed it since the form was shown; what they changed is told."""
    given = visit.field("revision")
    if draft.old is None or given == str(draft.old.revision):
        return False
    draft.revision = draft.old.revision
    now = Draft.of(draft.old)
    differs = [
        f"{name} is now “{now.values[name][:80]}”"
        for name in _names(draft.kind)
        if now.values[name] != draft.values.get(name, "") and name not in DOCUMENTS
    ] + [
        f"{name} has changed"
        for name in DOCUMENTS
        if name in now.values
        and json_of(now.values[name] or "null") != json_of(draft.values.get(name) or "null")
    ]
    what = "; ".join(differs) or "nothing that differs from yours"
    draft.said = f"Somebody saved it meanwhile: {what}. Save again to have it as it stands here."
    return True


def _posted(visit: Visit) -> tuple[Draft, dict[str, Any]]:
    """The form as it was sent, and the trigger in the words of a file."""
    kind = visit.field("type")
    if kind not in WORDS:
        raise Problem(422, 'a trigger is of type "event" or "schedule"', "invalid")
    said = {name: visit.field(name).replace("\r\n", "\n").strip() for name in _names(kind)}
    written: dict[str, Any] = {"trigger_type": kind, "is_enabled": visit.field("on") == "yes"}
    faults: list[Fault] = []
    for name, text in said.items():
        if not text:
            written[name] = None
        elif name in DOCUMENTS:
            value, wrong = json_of(text)
            written[name] = value
            if wrong is not None:
                faults.append(Fault(f"/{name}", wrong))
        elif name in WHOLE:
            written[name] = int(text) if text.isdecimal() and len(text) < 10 else text
        else:
            written[name] = text
    revision = visit.field("revision")
    number = int(revision) if revision.isdecimal() and len(revision) < 10 else 0
    return Draft(kind, said, written["is_enabled"], None, number, faults), written
