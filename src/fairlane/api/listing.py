"""Jobs by filter, newest first, at a cost that does not grow with the number of jobs.

Each of the three tables is read in the order of an index, behind the cursor. What an index is made
for (tenant, status, correlation id) narrows that scan; every other filter is applied to what comes
out of it, and a scan looks at no more than WINDOW rows. A page that ends there may be short, even
empty, and its cursor says where to go on.
"""

# ruff: noqa: S608 - statements are made from fixed parts; what a caller says is an argument.

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from fairlane.access.principal import Principal
from fairlane.api.paging import Page
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.errors import FairlaneError
from fairlane.ids import parse_id

WINDOW = 10_000

# An id is made by the clock of whoever made it. One that was wrong by more is found by no time.
SLACK = timedelta(days=1)

LIVE = ("scheduled", "queued", "running")
ENDED = ("succeeded", "succeeded_with_errors", "failed", "canceled")

COLUMNS = """id, tenant_id, definition_id, queue, {status} as status, source, source_ref, priority,
  payload, inputs_hash, dedupe_key, concurrency_key, correlation_id, created_at, scheduled_for,
  queued_at, started_at, {ended} as finished_at, attempt - forgiven as attempt_count, max_attempts,
  worker_id, phase, progress, errors, last_error, retry_of, replays, created_by,
  substr(trace, 4, 32) as trace_id"""

TABLES = {
    "job": COLUMNS.format(status="status", ended="null::timestamptz"),
    "dead_letter": COLUMNS.format(status="'dead_letter'", ended="died_at"),
    "history": COLUMNS.format(status="status", ended="finished_at"),
}

# Where their rows are read: of the history, those whose retention is not over.
READ_FROM = {"job": "job", "dead_letter": "dead_letter", "history": "ended"}
STILL_KEPT = (
    "case when status = 'pending' or settled_at + kept_days * interval '24 hours'"
    " > (select fairlane.clock()) then 1 end is not null"
)

SHOWN = """
select j.id, t.slug as tenant, j.tenant_id, d.key as definition_key, d.version, j.queue, j.status,
       j.source, j.source_ref, j.priority,
       fairlane.payload_shown(j.payload, d.arg_schema, d.redact) as payload, j.inputs_hash,
       j.dedupe_key, j.concurrency_key, j.correlation_id, j.created_at, j.scheduled_for,
       j.queued_at, j.started_at, j.finished_at, j.attempt_count, j.max_attempts, w.name as worker,
       j.phase, j.progress, j.errors, j.last_error, j.retry_of, j.replays, j.created_by,
       j.trace_id
  from ({found}) j
  join fairlane.tenant t on t.id = j.tenant_id
  join fairlane.definition d on d.id = j.definition_id
  left join fairlane.worker w on w.id = j.worker_id
 order by j.id desc"""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What a list of jobs is narrowed by; all that is set must hold."""

    status: Sequence[str] = ()
    source: str | None = None
    queue: str | None = None
    definition_key: str | None = None
    correlation_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    q: str | None = None
    source_ref: str | None = None
    worker: str | None = None
    error: str | None = None

    @property
    def is_empty(self) -> bool:
        return self == Filter()


@dataclass
class Found:
    rows: list[Record]
    cursor: str | None


async def find(connection: Connection, who: Principal, wanted: Filter, page: Page) -> Found:
    """A page of jobs that `who` may see; the connection acts for them."""
    statement = Statement(who, wanted, page.before)
    rows = await send(connection, statement.rows(page.rows))
    more = len(rows) == page.rows
    shown = rows[page.offset : page.offset + page.limit]
    if more:
        return Found(shown, str(shown[-1]["id"]))
    floor = await _floor(connection, statement)
    if floor is None:
        return Found(shown, None)
    # Below the floor one table was not looked at any more: what others have there comes again.
    return Found([row for row in shown if row["id"] >= floor], str(floor))


async def _floor(connection: Connection, statement: "Statement") -> UUID | None:
    """How far down the scan came where it ended at its window; None where it saw all there is."""
    if not statement.is_filtered:
        return None
    rows = await send(connection, statement.floors())
    floor: UUID | None = max((row["id"] for row in rows), default=None)
    return floor


class Statement:
    """One statement from fixed parts; all that a caller says is an argument."""

    def __init__(self, who: Principal, wanted: Filter, before: UUID | None) -> None:
        self._args: list[Any] = []
        self._wanted = wanted
        self._scan = self._scanned_by(who, before)
        self._filters = self._filtered_by()

    @property
    def is_filtered(self) -> bool:
        return bool(self._filters)

    def rows(self, most: int) -> Call:
        parts = [
            f"(select * from ({self._window(table)}) s {self._where()} order by id desc"
            f" limit {most})"
            for table in self._tables()
        ]
        found = f"select * from ({' union all '.join(parts)}) u order by id desc limit {most}"
        return Call(SHOWN.format(found=found), tuple(self._args))

    def floors(self) -> Call:
        """The last id of each window that is full."""
        parts = [
            f"(select id from fairlane.{READ_FROM[table]} {self._scan_of(table)}"
            f" order by id desc offset {WINDOW - 1} limit 1)"
            for table in self._tables()
        ]
        used = self._args[: self._scan_args]
        return Call(" union all ".join(parts), tuple(used))

    def _window(self, table: str) -> str:
        return (
            f"select {TABLES[table]} from fairlane.{READ_FROM[table]} {self._scan_of(table)}"
            f" order by id desc limit {WINDOW}"
        )

    def _scan_of(self, table: str) -> str:
        conditions = list(self._scan)
        if table == "dead_letter":
            conditions.append("status <> 'retried'")
            conditions.append(STILL_KEPT)
        elif statuses := self._statuses(table):
            conditions.append(f"status in ({', '.join(repr(status) for status in statuses)})")
        return f"where {' and '.join(conditions)}" if conditions else ""

    def _tables(self) -> list[str]:
        wanted = set(self._wanted.status)
        if not wanted:
            return list(TABLES)
        groups = {"job": LIVE, "dead_letter": ("dead_letter",), "history": ENDED}
        return [table for table, statuses in groups.items() if wanted & set(statuses)]

    def _statuses(self, table: str) -> list[str]:
        """The statuses that an index of this table is made for; `succeeded` is nearly all of it."""
        known = LIVE if table == "job" else ENDED
        return [status for status in known if status in self._wanted.status]

    def _scanned_by(self, who: Principal, before: UUID | None) -> list[str]:
        wanted, conditions = self._wanted, []
        if who.tenant_id is not None:
            conditions.append(f"tenant_id = {self._arg(who.tenant_id)}")
        if before is not None:
            conditions.append(f"id < {self._arg(before)}::uuid")
        if wanted.correlation_id is not None:
            conditions.append(f"correlation_id = {self._arg(wanted.correlation_id)}")
        if wanted.created_before is not None:
            conditions.append(f"id < {self._arg(first_id(wanted.created_before, SLACK))}::uuid")
        if wanted.created_after is not None:
            conditions.append(f"id >= {self._arg(first_id(wanted.created_after, -SLACK))}::uuid")
        self._scan_args = len(self._args)
        return conditions

    def _filtered_by(self) -> list[str]:
        wanted, conditions = self._wanted, []
        if wanted.status:
            conditions.append(f"status = any ({self._arg(list(wanted.status))}::text[])")
        if wanted.source is not None:
            conditions.append(f"source = {self._arg(wanted.source)}")
        if wanted.queue is not None:
            conditions.append(f"queue = {self._arg(wanted.queue)}")
        if wanted.definition_key is not None:
            conditions.append(
                "definition_id in (select d.id from fairlane.definition d"
                f" where d.key = {self._arg(wanted.definition_key)})"
            )
        if wanted.source_ref is not None:
            conditions.append(f"source_ref = {self._arg(wanted.source_ref)}")
        if wanted.worker is not None:
            conditions.append(
                "worker_id in (select w.id from fairlane.worker w"
                f" where w.name = {self._arg(wanted.worker)})"
            )
        if wanted.error is not None:
            conditions.append(
                f"position({self._arg(wanted.error.lower())} in lower(concat_ws(': ',"
                " last_error ->> 'type', last_error ->> 'message'))) > 0"
            )
        if wanted.created_after is not None:
            conditions.append(f"created_at >= {self._arg(wanted.created_after)}::timestamptz")
        if wanted.created_before is not None:
            conditions.append(f"created_at < {self._arg(wanted.created_before)}::timestamptz")
        if wanted.q is not None:
            conditions.append(self._searched(wanted.q))
        return conditions

    def _searched(self, text: str) -> str:
        try:
            return f"id = {self._arg(parse_id(text))}::uuid"
        except FairlaneError:
            found = self._arg(text.lower())
            return (
                f"(position({found} in lower(concat_ws(' ', correlation_id, dedupe_key,"
                " concurrency_key, source_ref, phase, created_by, last_error ->> 'message'))) > 0"
                " or definition_id in (select d.id from fairlane.definition d"
                f" where position({found} in lower(d.key)) > 0))"
            )

    def _where(self) -> str:
        return f"where {' and '.join(self._filters)}" if self._filters else ""

    def _arg(self, value: Any) -> str:
        self._args.append(value)
        return f"${len(self._args)}"


def first_id(moment: datetime, shifted: timedelta) -> UUID:
    """The lowest id that a moment can have."""
    seconds = moment.timestamp() + shifted.total_seconds()
    return UUID(int=min(max(int(seconds * 1000), 0), 2**48 - 1) << 80)
