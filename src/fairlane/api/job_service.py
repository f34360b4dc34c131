"""What is asked of and done to one job, for whoever asks: the calls and the web pages alike.

Reads take a connection that acts for `who` (`reading`); what changes something opens its own.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from fairlane import shapes
from fairlane.access.principal import Principal
from fairlane.api.answers import plain
from fairlane.api.bodies import JobIn
from fairlane.api.enqueuing import Answered
from fairlane.api.problems import not_there
from fairlane.api.service import Service
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send


@asynccontextmanager
async def reading(here: Service, who: Principal) -> AsyncIterator[Connection]:
    """One transaction of `who`'s that may take as long as a read may."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        yield connection


async def the_job(connection: Connection, who: Principal, job_id: UUID) -> dict[str, Any]:
    """The job as it is shown; 404 where it is not there, or another's."""
    call = Call(
        "select * from fairlane.jobs where id = $1 and ($2::uuid is null or tenant_id = $2)",
        (job_id, who.tenant_id),
    )
    rows = await send(connection, call)
    if not rows:
        raise not_there()
    return shapes.job(dict(rows[0]))


async def attempts_of(connection: Connection, who: Principal, job_id: UUID) -> list[dict[str, Any]]:
    call = calls.attempts(job_id, who.tenant_id)
    return [shapes.without_secrets(plain(row)) for row in await send(connection, call)]


async def result_of(connection: Connection, who: Principal, job_id: UUID) -> dict[str, Any]:
    """What the job has answered so far, which is nothing until `finished_at` is set."""
    call = Call(
        "select id, status, result, errors, last_error, finished_at, reused_from"
        " from fairlane.jobs where id = $1 and tenant_id = $2",
        (job_id, who.tenant_id),
    )
    rows = await send(connection, call)
    if not rows:
        raise not_there()
    return shapes.without_secrets(plain(rows[0], "result", "errors", "last_error"))


async def lines_of(
    connection: Connection,
    who: Principal,
    job_id: UUID,
    after: int,
    most: int,
    attempt: int | None = None,
) -> list[dict[str, Any]]:
    """Lines behind the number `after`, in the order they were written."""
    call = Call(
        "select seq, attempt, logged_at as at, level, message, fields"
        "  from fairlane.log_line"
        " where job_id = $1 and tenant_id = $2 and seq > $3"
        "   and ($4::int is null or attempt = $4)"
        " order by seq limit $5",
        (job_id, who.tenant_id, after, attempt, most),
    )
    return [plain(row, "fields") for row in await send(connection, call)]


async def last_lines_of(
    connection: Connection, who: Principal, job_id: UUID, most: int, before: int | None = None
) -> list[dict[str, Any]]:
    """The newest lines, or those just before a number, in the order they were written."""
    call = Call(
        "select * from (select seq, attempt, logged_at as at, level, message, fields"
        "  from fairlane.log_line"
        " where job_id = $1 and tenant_id = $2 and ($3::bigint is null or seq < $3)"
        " order by seq desc limit $4) newest order by seq",
        (job_id, who.tenant_id, before, most),
    )
    return [plain(row, "fields") for row in await send(connection, call)]


async def output_of(
    connection: Connection, who: Principal, job_id: UUID, attempt: int | None = None
) -> list[dict[str, Any]]:
    """The ends of what a command printed."""
    call = Call(
        "select attempt, stream, tail, bytes, written_at from fairlane.output"
        " where job_id = $1 and tenant_id = $2 and ($3::int is null or attempt = $3)"
        " order by attempt, stream",
        (job_id, who.tenant_id, attempt),
    )
    return [plain(row) for row in await send(connection, call)]


async def dropped_of(connection: Connection, who: Principal, job_id: UUID) -> int:
    """How many of its first lines are kept no more."""
    call = Call(
        "select lines from fairlane.log_cut where job_id = $1 and tenant_id = $2",
        (job_id, who.tenant_id),
    )
    rows = await send(connection, call)
    return rows[0]["lines"] if rows else 0


async def explanation_of(connection: Connection, who: Principal, job_id: UUID) -> dict[str, Any]:
    (row,) = await send(connection, calls.explain(job_id, who.tenant))
    found: dict[str, Any] = plain({"why": row[0]}, "why")["why"]
    # The answer first; jsonb keeps no order.
    return {name: found.pop(name) for name in ("id", "status", "reason", "detail")} | found


async def cancel_job(
    here: Service, who: Principal, job_id: UUID, reason: str | None = None
) -> dict[str, Any]:
    async with here.database.acting(who) as connection:
        await send(connection, calls.cancel(job_id, reason, who.tenant))
        return await the_job(connection, who, job_id)


async def move_job(
    here: Service, who: Principal, job_id: UUID, priority: int | None
) -> dict[str, Any]:
    """Another place in its lane; without a number, ahead of all that wait there."""
    async with here.database.acting(who) as connection:
        await send(connection, calls.set_priority(job_id, priority, who.tenant))
        return await the_job(connection, who, job_id)


async def shown_of(here: Service, who: Principal, found: Answered) -> tuple[int, dict[str, Any]]:
    """The answer to an enqueue: 202 for a new job, 200 for one that was there."""
    job = found.job
    if job is None:
        async with reading(here, who) as connection:
            job = await the_job(connection, who, found.id)
    shown = {**job, "deduplicated": found.deduplicated, "reused": found.reused}
    if found.warning:
        shown["warning"] = found.warning
    return (200 if found.deduplicated or found.reused else 202), shown


async def enqueue_job(
    here: Service, who: Principal, body: JobIn, correlation_id: str, retry_of: UUID | None = None
) -> tuple[int, dict[str, Any]]:
    asked = await here.enqueuer.prepare(who, body, correlation_id, retry_of)
    return await shown_of(here, who, await here.enqueuer.one(asked))


# The definition is the same: what it hides of this payload it hides of the other.
UNREDACTED = """
select fairlane.unredacted($3::text::jsonb, j.payload)::text as payload
  from (select payload from fairlane.job where id = $1 and tenant_id = $2
         union all
        select payload from fairlane.dead_letter where id = $1 and tenant_id = $2
         union all
        select payload from fairlane.history where id = $1 and tenant_id = $2) j
 limit 1
"""


async def edited_payload(
    connection: Connection, who: Principal, job_id: UUID, edited: dict[str, Any]
) -> dict[str, Any]:
    """A job's payload that a person edited: a marker that was left where it was shown stands for
    the secret behind it. For a job of the same definition and version, and no other."""
    json.check(edited, "the payload")
    call = Call(UNREDACTED, (job_id, who.tenant_id, json.dumps(edited)))
    rows = await send(connection, call)
    if not rows:
        raise not_there()
    found: dict[str, Any] = json.loads(rows[0]["payload"])
    return found


async def retry_job(here: Service, who: Principal, job_id: UUID) -> dict[str, Any]:
    """The new job."""
    async with here.database.acting(who) as connection:
        (row,) = await send(connection, calls.retry(job_id, who.tenant))
        return await the_job(connection, who, row[0])
