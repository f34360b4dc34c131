"""Requests as the database reads them, and its answers as values."""

import logging
from collections.abc import Generator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from fairlane.client.request import Request
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.ids import uuid7
from fairlane.job import Enqueued, JobStatus

log = logging.getLogger("fairlane")

# Casts are spelled out: SQLAlchemy would take the second colon of `::text` for a parameter.
_ASKED = "cast(cast($1 as text) as jsonb)"

# A delay counts from the database's clock, which alone says when a job is due.
_ASKED_WITH_DELAYS = """(
  select jsonb_agg(
           case when job -> 'delay' is null then job
                else (job - 'delay') || jsonb_build_object('scheduled_for',
                       fairlane.clock()
                       + make_interval(secs => cast(job ->> 'delay' as float8)))
           end order by nth)
    from jsonb_array_elements(cast(cast($1 as text) as jsonb)) with ordinality as a (job, nth))"""

_ENQUEUE = """\
select cast(to_json(e) as text)
  from (select {asked} as jobs) a
 cross join lateral fairlane.enqueue_many({jobs}) e"""

# Enqueues nothing where a definition is not there: a refusal would spoil the caller's transaction.
_ALL_OR_NOTHING = """
  case when exists (select
                      from jsonb_array_elements(a.jobs) as b (job)
                     where not exists (select
                                         from fairlane.definition d
                                        where d.key = job ->> 'definition'
                                          and d.version = coalesce(job ->> 'version', d.version)))
       then cast('[]' as jsonb)
       else a.jobs end"""


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


class _Answer(msgspec.Struct):
    item: int
    id: UUID
    status: JobStatus
    queue: str
    scheduled_for: datetime
    deduplicated: bool
    warning: str | None = None


_answer = msgspec.json.Decoder(_Answer)


class Batch:
    """Requests with their ids: sent once or many times, they are the same jobs."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
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
        sql = _ENQUEUE.format(
            asked=_ASKED_WITH_DELAYS if delays else _ASKED,
            jobs=_ALL_OR_NOTHING if if_defined else "a.jobs",
        )
        return Call(sql, (json.dumps(self._items),))

    def answers(self, rows: Iterable[str | bytes]) -> list[Enqueued]:
        """What became of each request, in their order; warnings go to the log."""
        found = sorted((_answer.decode(row) for row in rows), key=lambda answer: answer.item)
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
                warning=answer.warning,
            )
            for request, answer in zip(self.requests, found, strict=True)
        ]

    def steps(
        self, definitions: Sequence[dict[str, Any]], *, define_first: bool
    ) -> Generator[Call, list[str], list[Enqueued]]:
        """Calls to send, one after the other, through a connection that is the caller's.

        Nobody can tell from here which database that is, nor whether a transaction that defined
        the tasks was committed; so the database is asked, in the same round trip.
        """
        if define_first and definitions:
            yield define(definitions)
        rows = yield self.call(if_defined=bool(definitions))
        if not rows:
            yield define(definitions)
            rows = yield self.call()
        return self.answers(rows)


def define(definitions: Sequence[dict[str, Any]]) -> Call:
    """Two who define at once take the same locks in the same order."""
    ordered = sorted(definitions, key=lambda each: (each["key"], each["version"]))
    sql = "select cast(to_json(d) as text) from fairlane.define(cast(cast($1 as text) as jsonb)) d"
    return Call(sql, calls.define(ordered).args)


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
        correlation_id=request.correlation_id,
        max_attempts=request.max_attempts,
    )
