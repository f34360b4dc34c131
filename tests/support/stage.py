"""One database for many examples, and steps that are taken from plain functions."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import asyncpg
from hypothesis import strategies as st

from support.clock import Clock
from support.core import Core
from support.model import Limits

QUEUES = ("default", "critical")
TENANTS = {"a": 1, "b": 3, "c": None}
KINDS = {
    "plain": Limits(),
    "few": Limits(max_running=2),
    "each": Limits(max_running_per_tenant=1),
    "slow": Limits(starts_per_minute=2),
}

EMPTY = """
truncate fairlane.job, fairlane.arrival, fairlane.lane, fairlane.share, fairlane.gate,
         fairlane.dead_letter, fairlane.history, fairlane.attempt, fairlane.worker,
         fairlane.audit;
update fairlane.tenant
   set paused_at = null, max_running = case slug when 'a' then 1 when 'b' then 3 end;
"""

T = TypeVar("T")

requests = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(sorted(TENANTS)),
        "definition": st.sampled_from(sorted(KINDS)),
        "queue": st.sampled_from(("default", "default", "critical")),
        "priority": st.integers(0, 2),
        "concurrency_key": st.sampled_from((None, None, "k")),
    }
)


class Stage:
    """The machine's own connection, and one whose transactions stay open."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.runner = asyncio.Runner()
        self.clock = clock
        self.core, self.slow = (Core(self.run(asyncpg.connect(url))) for _ in range(2))
        for tenant in TENANTS:
            self.run(self.core.a_tenant(tenant))
        self.run(self.core.limit_queue("default", max_backlog_per_tenant=None))

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(step)

    def empty(self) -> None:
        self.run(self.core.conn.execute(EMPTY))

    @classmethod
    @contextmanager
    def on(cls, url: str) -> Iterator["Stage"]:
        with Clock.of(url) as clock:
            stage = cls(url, clock)
            with stage.runner:
                yield stage
                stage.run(stage.core.conn.close())
                stage.run(stage.slow.conn.close())
