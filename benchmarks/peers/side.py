"""What every system must be able to do. How it is measured is none of its business."""

import importlib
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

PAYLOAD = {"report_id": 123456, "format": "pdf", "folder": "/invoices/2026/q1", "to": "a@b.example"}


@dataclass(frozen=True)
class Order:
    """One job to enqueue. Only Fairlane knows tenants; to the others all jobs are alike."""

    payload: Mapping[str, Any] = field(default_factory=lambda: PAYLOAD)
    tenant: str = "t0"


@dataclass(frozen=True)
class Place:
    """Where a system lives: a PostgreSQL database of its own, and an empty Redis if there is one.

    Tenants and their limit are for Fairlane, which is never measured without a tenant; the limit is
    exact and never met, unless a scenario takes it away.
    """

    url: str
    redis: str = ""
    tenants: int = 2
    limit: int | None = 10_000


class Side(Protocol):
    """One system, set up for speed as its documentation recommends."""

    @property
    def unfinished(self) -> str | None:
        """A query: is there a job that the database does not yet know as done? None where the first
        line of the last job is all that can be seen from outside, as on Redis."""

    @property
    def slots(self) -> int:
        """How many jobs it takes on at once in one process, for throughput."""

    @property
    def bulk(self) -> bool:
        """Whether it can enqueue many in one call."""

    @property
    def blocking(self) -> bool:
        """Whether its calls block: then it has a plain thread to itself, and no event loop."""

    @property
    def one_at_a_time(self) -> bool:
        """Whether a process runs only one job, so that ten slots are ten processes."""

    async def install(self, place: Place) -> None:
        """The schema and whatever else there must be once."""

    async def open(self, place: Place) -> None:
        """In each process, before it enqueues or works."""

    def enqueue(self, order: Order) -> Awaitable[None] | None:
        """One job, safe where the system keeps it when this is over."""

    def enqueue_many(self, orders: Sequence[Order]) -> Awaitable[None] | None:
        """Many in one call."""

    def work(self, slots: int) -> Awaitable[None] | None:
        """Work with so many at once, until the process is killed."""


class OnRedis:
    """What those on Redis have in common: no schema, and nothing to ask a database."""

    unfinished = None
    bulk = False

    async def install(self, place: Place) -> None: ...

    def enqueue_many(self, orders: Sequence[Order]) -> Awaitable[None] | None:
        raise NotImplementedError("it has no call that enqueues many")


def side_of(system: str) -> Side:
    module = importlib.import_module(f"benchmarks.peers.{system.replace('-', '_')}_side")
    made: Side = module.side()
    return made
