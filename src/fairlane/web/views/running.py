"""/t/{tenant}/jobs/new: run a job by hand, by a form that its definition's schema makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from starlette.responses import Response

from fairlane.api.bodies import job_of
from fairlane.api.job_service import edited_payload, enqueue_job, the_job
from fairlane.api.problems import Problem, problem_of
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.definitions.definition import Definition
from fairlane.definitions.rows import find
from fairlane.errors import FairlaneError, Fault, Faulty
from fairlane.ids import parse_id
from fairlane.web.forms.inputs import inputs_of, pretty
from fairlane.web.forms.reading import Reader, json_of
from fairlane.web.visit import Visit

OPTIONS = ("priority", "scheduled_for", "dedupe_key", "concurrency_key")
SHOWN = 100
AT_FIELDS = "Nothing was enqueued; what is wrong stands at its field."

# The newest active version of each, as an enqueue would take it.
KINDS = """
select distinct on (key) key, version, description, queue
  from fairlane.definition
 where is_active and ($1 = '' or position($1 in lower(key || ' ' || description)) > 0)
 order by key, version_order desc, version ~ '[^0-9.]', created_at desc
 limit $2
"""


@dataclass
class Draft:
    """A job that somebody is writing: what stands in the form, and what is wrong with it."""

    definition: Definition
    again: Mapping[str, Any] | None = None
    """The job whose payload is edited."""
    is_raw: bool = False
    raw: str = ""
    typed: Mapping[str, str] | None = None
    payload: Mapping[str, Any] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[Fault] = ()
    said: str = ""

    @property
    def by_pointer(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for fault in self.faults:
            found.setdefault(fault.pointer, []).append(fault.message)
        return found

    @property
    def inputs(self) -> Sequence[Any]:
        return inputs_of(
            self.definition.arg_schema, self.payload, typed=self.typed, faults=self.by_pointer
        )

    @property
    def of_raw(self) -> list[str]:
        """What is wrong with the payload where all of it is one field."""
        return [
            str(fault) if fault.pointer else fault.message
            for fault in self.faults
            if not fault.pointer.startswith("job:")
        ]

    def of_option(self, name: str) -> list[str]:
        """What is wrong with a field beside the payload."""
        return self.by_pointer.get(f"job:/{name}", [])


async def show(visit: Visit) -> Response:
    """With `kind` the form, with `from` the form of a job that ran; else what may run."""
    async with visit.reading() as connection:
        if visit.query("from"):
            draft = await _of_job(visit, connection, visit.query("from"))
        elif visit.query("kind"):
            draft = Draft(await find(connection, visit.query("kind")[:200], None))
        else:
            asked = visit.query("q").strip()[:100]
            kinds = await send(connection, Call(KINDS, (asked.lower(), SHOWN)))
            return await visit.show("run.html", draft=None, kinds=kinds, asked=asked)
    return await _form(visit, draft)


async def _of_job(visit: Visit, connection: Connection, given: str) -> Draft:
    job = await the_job(connection, visit.who, parse_id(given))
    definition = await find(connection, job["definition_key"], job["version"])
    options = {
        "priority": str(job["priority"]),
        "concurrency_key": job["concurrency_key"] or "",
    }
    return Draft(definition, again=job, payload=job["payload"], options=options)


async def _form(visit: Visit, draft: Draft, status: int = 200) -> Response:
    if draft.is_raw and not draft.raw:
        held = draft.payload
        draft.raw = pretty(held if held is not None else _defaults(draft.definition))
    return await visit.show("run.html", status, draft=draft, kinds=[], asked="")


def _defaults(definition: Definition) -> dict[str, Any]:
    found = definition.arg_schema.get("properties")
    members = found if isinstance(found, Mapping) else {}
    return {
        name: each["default"]
        for name, each in members.items()
        if isinstance(each, Mapping) and "default" in each
    }


async def run(visit: Visit) -> Response:
    """Enqueue it or, by the toggle, show what was typed in the other way."""
    draft = await _posted(visit)
    payload, faults = _payload(visit, draft)
    if visit.field("do") in ("raw", "form"):
        return await _toggled(visit, draft, payload, faults)
    body, wrong = _body(visit, draft, payload)
    draft.faults = [*faults, *wrong]
    if draft.faults:
        draft.said = AT_FIELDS
        return await _form(visit, draft, 422)
    try:
        retry_of: UUID | None = None
        if draft.again is not None:
            retry_of = draft.again["id"]
            async with visit.reading() as connection:
                body["payload"] = await edited_payload(connection, visit.who, retry_of, payload)
        made, job = await enqueue_job(
            visit.here, visit.who, job_of(body), visit.request_id, retry_of
        )
    except Problem as problem:
        if not problem.faults:
            raise
        draft.faults = [_beside(fault) for fault in problem.faults]
    except FairlaneError as error:
        # A full backlog, a definition that was switched off: what was typed is kept all the same.
        status = problem_of(error).status
        if status not in (409, 422, 429):
            raise
        draft.faults = [_beside(each) for each in error.faults] if isinstance(error, Faulty) else []
        draft.said = AT_FIELDS if draft.faults else str(error)
        return await _form(visit, draft, status)
    else:
        return _enqueued(visit, made, job)
    return await _form(visit, draft, 422)


def _enqueued(visit: Visit, status: int, job: Mapping[str, Any]) -> Response:
    said = "The job is enqueued."
    if job["deduplicated"]:
        said = "A live job has this dedupe key; no other was made. This is it."
    elif job["reused"]:
        said = "A job has succeeded with the same inputs; its result is used again."
    watch = visit.field("do") == "watch" or status == 200
    to = visit.u("job", visit.tenant, job["id"]) if watch else visit.u("jobs", visit.tenant)
    return visit.done(said, to)


async def _posted(visit: Visit) -> Draft:
    async with visit.reading() as connection:
        if visit.field("from"):
            # Its own definition and version, whatever the form says: another might show the
            # secrets that a marker stands for.
            draft = await _of_job(visit, connection, visit.field("from"))
        else:
            draft = Draft(await find(connection, visit.field("kind")[:200], None))
    draft.options = {name: visit.field(name).strip() for name in OPTIONS}
    draft.is_raw = visit.field("as") == "raw"
    draft.raw = visit.field("raw").replace("\r\n", "\n")
    draft.typed = {
        name: visit.fields(name)[-1].replace("\r\n", "\n").replace("\x00", "")
        for name in visit.form
        if name[:2] in ("p:", "j:") and visit.fields(name)
    }
    return draft


def _payload(visit: Visit, draft: Draft) -> tuple[dict[str, Any], list[Fault]]:
    if not draft.is_raw:
        reader = Reader(draft.definition.arg_schema, draft.typed or {}, visit.prefs.tz)
        return reader.payload(), reader.faults
    value, wrong = json_of(draft.raw.strip() or "{}")
    if wrong is None and not isinstance(value, dict):
        wrong = "give an object, between { and }"
    return (value, []) if wrong is None else ({}, [Fault("", wrong)])


async def _toggled(
    visit: Visit, draft: Draft, payload: dict[str, Any], faults: list[Fault]
) -> Response:
    if faults:
        draft.faults = faults
        draft.said = "Put this right first: it cannot be shown in the other way."
        return await _form(visit, draft, 422)
    draft.is_raw = visit.field("do") == "raw"
    draft.raw, draft.typed, draft.payload = "", None, payload
    return await _form(visit, draft)


def _body(
    visit: Visit, draft: Draft, payload: dict[str, Any]
) -> tuple[dict[str, Any], list[Fault]]:
    """As POST /jobs takes it."""
    said, faults = draft.options, []
    body: dict[str, Any] = {"definition_key": draft.definition.key, "payload": payload}
    if draft.again is not None:
        body["version"] = draft.definition.version
    for name in ("dedupe_key", "concurrency_key"):
        if said.get(name):
            body[name] = said[name]
    if said.get("priority"):
        try:
            body["priority"] = int(said["priority"])
        except ValueError:
            faults.append(Fault("job:/priority", "give a whole number; lower goes first"))
    if said.get("scheduled_for"):
        try:
            moment = datetime.fromisoformat(said["scheduled_for"])
            body["scheduled_for"] = (
                moment if moment.tzinfo else moment.replace(tzinfo=visit.prefs.tz)
            ).isoformat()
        except ValueError:
            faults.append(Fault("job:/scheduled_for", "give a time like 2026-11-16T09:00"))
    return body, faults


def _beside(fault: Fault) -> Fault:
    """A fault of the request, at the field of the payload or beside it that it is about."""
    if fault.pointer.removeprefix("/") in OPTIONS:
        return Fault(f"job:{fault.pointer}", fault.message)
    return Fault(fault.pointer.removeprefix("/payload"), fault.message)
