"""A large installation: many tenants, a long backlog, things that run, wait and are over."""

from datetime import timedelta

from fairlane.ids import uuid7
from support.clock import Clock
from support.core import Core

TENANTS = 500
JOBS = 50_000
HISTORY = 20_000
BATCH = 5_000
KINDS = {"plain": {}, "few": {"max_running": 100}, "paced": {"starts_per_minute": 5000}}


async def crowd(core: Core, clock: Clock) -> None:
    """Fill a database; nothing is analysed."""
    await core.limit_queue("default", max_backlog_per_tenant=1000)
    for kind, limits in KINDS.items():
        await core.a_definition(kind, **limits)
    await core.fetch(
        "insert into fairlane.tenant (slug, plan) "
        "select 't' || n, 'pro' from generate_series(0, $1 - 1) n",
        TENANTS,
    )
    later = clock.now() + timedelta(hours=1)
    kinds = [*KINDS]
    for start in range(0, JOBS, BATCH):
        await core.enqueue_many(
            [
                {
                    "id": uuid7(),
                    "resend": False,
                    "tenant": f"t{n % TENANTS}",
                    "definition": kinds[n // TENANTS % 3],
                    "scheduled_for": later if n % 7 == 0 else None,
                    "dedupe_key": f"d{n}" if n % 11 == 0 else None,
                    "concurrency_key": f"k{n % 50}" if n % 101 == 0 else None,
                }
                for n in range(start, start + BATCH)
            ]
        )
    while await core.sweep():
        pass
    await _past(core)


async def _past(core: Core) -> None:
    """What is over: copied from what is not, for speed."""
    columns = (
        "tenant_id, definition_id, queue, priority, payload, scheduled_for, created_at, attempt, "
        "forgiven, lost, max_attempts, source, replays"
    )
    await core.fetch(
        f"insert into fairlane.history (id, status, finished_at, {columns}) "
        f"select fairlane.uuid7(fairlane.clock()), 'succeeded', "
        f"fairlane.clock() + random() * interval '2 days', {columns} "
        "from fairlane.job limit $1",
        HISTORY,
    )
    await core.fetch(
        f"insert into fairlane.dead_letter (id, reason, died_at, {columns}) "
        f"select fairlane.uuid7(fairlane.clock()), 'attempts', fairlane.clock(), {columns} "
        "from fairlane.job limit 1000"
    )
