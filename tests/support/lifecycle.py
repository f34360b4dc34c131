"""A job in every state that there is, each with a tenant, a queue and a worker of its own."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from fairlane.ids import uuid7
from support.clock import Clock
from support.core import Core, Lease

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
LEASE_SECONDS = 30
LATER = timedelta(seconds=10_000)


@dataclass
class Subject:
    """The job that a verb is tried on, and the attempt that tries it."""

    tenant: str
    tenant_id: UUID
    queue: str
    kind: str
    worker: UUID
    job: UUID
    lease: Lease


def cells(page: Path = PAGE) -> dict[tuple[str, str], str]:
    """What the tables of the page say, by state and verb."""
    found: dict[tuple[str, str], str] = {}
    verbs: list[str] = []
    for line in page.read_text().splitlines():
        if not line.startswith("|"):
            verbs = []
        elif not verbs:
            first, *verbs = _row(line)
            assert first == "state", f"a table of {page.name} begins with {first!r}"
        elif not re.fullmatch(r"[|\s-]+", line):
            state, *values = _row(line)
            for verb, value in zip(verbs, values, strict=True):
                assert (state, verb) not in found, f"{state} x {verb} stands there twice"
                found[state, verb] = value
    return found


def _row(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


async def state_of(core: Core, job: UUID) -> str:
    """The state of a job in the words of the page, from the tables alone."""
    states = await core.fetch(
        "select case when j.cancel_requested_at is not null then 'running, asked to cancel' "
        "            when j.status = 'queued' and d.id is not null then 'replayed' "
        "            else j.status end "
        "  from fairlane.job j left join fairlane.dead_letter d on d.id = j.id where j.id = $1 "
        "union all select 'dead_letter, ' || status from fairlane.dead_letter "
        " where id = $1 and status <> 'retried' "
        "union all select status from fairlane.history where id = $1",
        job,
    )
    assert len(states) < 2, f"job {job} is in {len(states)} places"
    return states[0][0] if states else "none"


# The way to each state. They begin with a job that is queued.


async def _run(core: Core, subject: Subject) -> None:
    subject.lease = await core.claim_one(subject.worker, subject.queue)


async def _ask_to_cancel(core: Core, subject: Subject) -> None:
    await _run(core, subject)
    await core.cancel(subject.job)


async def _run_again(core: Core, subject: Subject) -> None:
    """By the same worker: only the number tells the two attempts apart."""
    await _run(core, subject)
    await core.snooze(subject.lease, 0)
    await core.claim_one(subject.worker, subject.queue)


async def _succeed(core: Core, subject: Subject) -> None:
    await _run(core, subject)
    await core.finish(subject.lease)


async def _succeed_in_part(core: Core, subject: Subject) -> None:
    await _run(core, subject)
    await core.finish(subject.lease, errors=[{"item": 3}])


async def _fail(core: Core, subject: Subject) -> None:
    await _run(core, subject)
    await core.fail(subject.lease, final=True)


async def _cancel(core: Core, subject: Subject) -> None:
    await _ask_to_cancel(core, subject)
    await core.canceled(subject.lease)


async def _die(core: Core, subject: Subject) -> None:
    while await core.one("select true from fairlane.job where id = $1", subject.job):
        await _run(core, subject)
        await core.fail(subject.lease, retry_after=0)


async def _resolve(core: Core, subject: Subject) -> None:
    await _die(core, subject)
    await core.resolve(subject.job, notes="by hand")


async def _ignore(core: Core, subject: Subject) -> None:
    await _die(core, subject)
    await core.ignore(subject.job)


async def _replay(core: Core, subject: Subject) -> None:
    await _die(core, subject)
    await core.replay(subject.job)


async def _nothing(core: Core, subject: Subject) -> None:
    """It is there already."""


STATES: dict[str, Callable[[Core, Subject], Awaitable[None]]] = {
    "none": _nothing,
    "scheduled": _nothing,
    "queued": _nothing,
    "running": _run,
    "running, asked to cancel": _ask_to_cancel,
    "running, later attempt": _run_again,
    "running, lease ended": _run,
    "succeeded": _succeed,
    "succeeded_with_errors": _succeed_in_part,
    "failed": _fail,
    "canceled": _cancel,
    "dead_letter, pending": _die,
    "dead_letter, resolved": _resolve,
    "dead_letter, ignored": _ignore,
    "replayed": _replay,
}


async def subject_in(core: Core, clock: Clock, state: str) -> Subject:
    """A job that has come to this state by the verbs."""
    name = re.sub(r"[^a-z]+", "-", state)
    await core.limit_queue(name)
    tenant = await core.a_tenant(name, max_running=5)
    kind = await core.a_definition(name, queue=name, max_attempts=2, retry_delays=[60])
    worker, job = await core.a_worker(LEASE_SECONDS), uuid7()
    if state != "none":
        due = clock.now() + LATER if state == "scheduled" else None
        await core.enqueue(tenant, kind, id=job, scheduled_for=due)
    tenant_id = await core.one("select id from fairlane.tenant where slug = $1", tenant)
    never = Lease(worker, job, 1, tenant, kind, 1)
    subject = Subject(tenant, tenant_id, name, kind, worker, job, never)
    await STATES[state](core, subject)
    await core.sweep()
    return subject


async def rows(core: Core, tenant_id: UUID, tables: tuple[str, ...]) -> list[Any]:
    """Everything that these tables say of a tenant."""
    return await core.fetch(
        " union all ".join(
            f"select '{table}', t::text from fairlane.{table} t where t.tenant_id = $1"
            for table in tables
        )
        + " order by 1, 2",
        tenant_id,
    )
