"""Requests as the database reads them, and its answers as values."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from fairlane import correlation
from fairlane.client.request import Request
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.ids import uuid7
from fairlane.job import Enqueued, JobStatus
from fairlane.observe import trace

log = logging.getLogger("fairlane")

# A delay counts from the database's clock, which alone says when a job is due.
_ASKED_WITH_DELAYS = """(
  select jsonb_agg(
           case when job -> 'delay' is null then job
                else (job - 'delay') || jsonb_build_object('scheduled_for',
                       fairlane.clock()
                       + make_interval(secs => cast(job ->> 'delay' as float8)))
           end order by nth)
    from jsonb_array_elements({jobs}) with ordinality as a (job, nth))"""

# Casts are spelled out: SQLAlchemy would take the second colon of `::text` for a parameter.
_ENQUEUE = """\
select cast(to_json(e) as text)
  from (select cast(cast($1 as text) as jsonb) as it) sent
 cross join lateral (select {asked} as jobs) a
 cross join lateral fairlane.enqueue_many({jobs}) e"""

_ALL_OR_NOTHING = """
  case when {reasons}
       then cast('[]' as jsonb)
       else a.jobs end"""

# A definition is not there: a refusal would spoil the caller's transaction.
_UNDEFINED = """\
exists (select
                    from jsonb_array_elements(a.jobs) as b (job)
                   where not exists (select
                                       from fairlane.definition d
                                      where d.key = job ->> 'definition'
                                        and d.version = coalesce(job ->> 'version', d.version)))"""

# The one that fairlane.enqueue_many would take.
_MEANT = """\
(select id, version, is_active, executor, settings, arg_schema
   from fairlane.definition
  where key = asked.key
    and (asked.version is null or version = asked.version)
  order by is_active desc, version_order desc, version ~ '[^0-9.]', created_at desc
  limit 1)"""

# All that a payload is judged by.
_DIGEST = """\
encode(sha256(convert_to(concat_ws(' ', d.executor, d.settings, d.arg_schema), 'UTF8')), 'hex')"""

# A definition is not the one that the payloads were validated by.
_CHANGED = f"""\
exists (select
                    from jsonb_to_recordset(sent.it -> 'expected')
                         as asked (key text, version text, id uuid, digest text)
                   where not exists (select
                                       from {_MEANT} d
                                      where d.id = asked.id
                                        and {_DIGEST} = asked.digest))"""  # noqa: S608

_LOOK = f"""\
select cast(json_build_object('key', asked.key, 'asked', asked.version, 'version', d.version,
                              'id', d.id, 'digest', {_DIGEST}, 'executor', d.executor,
                              'settings', d.settings, 'arg_schema', d.arg_schema)
            as text)
  from jsonb_to_recordset(cast(cast($1 as text) as jsonb)) as asked (key text, version text)
 cross join lateral {_MEANT} d
 where d.is_active"""  # noqa: S608


class _Item(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A request in the names of fairlane.enqueue_many."""

    id: UUID
    tenant: str
    definition: str
    payload: msgspec.Raw
    resend: bool = True
    version: str | None = None
    queue: str | None = None
    priority: int | None = None
    scheduled_for: datetime | None = None
    delay: float | None = None
    dedupe_key: str | None = None
    concurrency_key: str | None = None
    correlation_id: str | None = None
    max_attempts: int | None = None
    inputs_hash: str | None = None
    reuse: bool | None = None
    trace: str | None = None


class _Answer(msgspec.Struct):
    item: int
    id: UUID
    status: JobStatus
    queue: str
    scheduled_for: datetime
    deduplicated: bool
    warning: str | None = None
    reused: bool | None = None


_answer = msgspec.json.Decoder(_Answer)


class Batch:
    """Requests with their ids: sent once or many times, they are the same jobs.

    `expected` has the definitions that payloads were validated by. If one is another by now,
    nothing is enqueued, and there are no answers.
    """

    def __init__(
        self, requests: Sequence[Request], expected: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.requests = requests
        self._expected = expected
        self._items = [_item(request) for request in requests]

    @property
    def ids(self) -> list[UUID]:
        return [item.id for item in self._items]

    def call(self, *, again: bool = False, if_defined: bool = False) -> Call:
        """`again`: an earlier send may have arrived, so that every id is looked for."""
        if again:
            for item in self._items:
                item.resend = True
        delays = any(item.delay is not None for item in self._items)
        # What may have arrived was right when it was sent.
        expected = self._expected and not again
        jobs = "(sent.it -> 'jobs')" if expected else "sent.it"
        reasons = [*([_UNDEFINED] if if_defined else []), *([_CHANGED] if expected else [])]
        sql = _ENQUEUE.format(
            asked=_ASKED_WITH_DELAYS.format(jobs=jobs) if delays else jobs,
            jobs=_ALL_OR_NOTHING.format(reasons=" or ".join(reasons)) if reasons else "a.jobs",
        )
        sent = {"jobs": self._items, "expected": self._expected} if expected else self._items
        return Call(sql, (json.dumps(sent),))

    def answers(self, rows: Iterable[str | bytes]) -> list[Enqueued]:
        """What became of each request, in their order; warnings go to the log."""
        found = sorted((_answer.decode(row) for row in rows), key=lambda answer: answer.item)
        if not found:
            return []
        for warning in dict.fromkeys(answer.warning for answer in found if answer.warning):
            log.warning(warning)
        return [
            Enqueued(
                id=answer.id,
                tenant=request.tenant,
                definition_key=request.definition_key,
                queue=answer.queue,
                status=answer.status,
                scheduled_for=answer.scheduled_for.astimezone(UTC),
                deduplicated=answer.deduplicated,
                reused=bool(answer.reused),
                warning=answer.warning,
            )
            for request, answer in zip(self.requests, found, strict=True)
        ]


def define(definitions: Sequence[dict[str, Any]]) -> Call:
    """Two who define at once take the same locks in the same order."""
    ordered = sorted(definitions, key=lambda each: (each["key"], each["version"]))
    sql = "select cast(to_json(d) as text) from fairlane.define(cast(cast($1 as text) as jsonb)) d"
    return Call(sql, calls.define(ordered).args)


def look(names: Iterable[tuple[str, str | None]]) -> Call:
    """Asks for the active definitions of these keys and versions."""
    asked = [{"key": key, "version": version} for key, version in names]
    return Call(_LOOK, (json.dumps(asked),))


def _item(request: Request) -> _Item:
    assert request.body is not None
    assert not isinstance(request.id, str)
    when = request.scheduled_for
    return _Item(
        # An id of our own making is new; one that the caller gave may have been sent before.
        id=request.id or uuid7(),
        resend=request.id is not None,
        tenant=request.tenant,
        definition=request.definition_key,
        payload=msgspec.Raw(request.body),
        version=request.version,
        queue=request.queue,
        priority=request.priority,
        scheduled_for=when if isinstance(when, datetime) else None,
        delay=when.total_seconds() if isinstance(when, timedelta) else None,
        dedupe_key=request.dedupe_key,
        concurrency_key=request.concurrency_key,
        correlation_id=request.correlation_id or correlation.passed_on(),
        max_attempts=request.max_attempts,
        inputs_hash=request.inputs_hash,
        reuse=request.reuse,
        trace=trace.CURRENT.get(),
    )
