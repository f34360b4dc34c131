"""Awa: a core in Rust that calls tasks in Python, with large claims and its direct COPY."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from awa import AsyncClient
from benchmarks.peers.job import run
from benchmarks.peers.side import Order, Place, Side


@dataclass
class Noop:
    report_id: int
    format: str
    folder: str
    to: str
    ms: float = 0
    us: float = 0
    pace: float = 0
    who: int = 0
    asked: float = 0
    more: str = ""


class AwaSide:
    unfinished = "select exists (select from awa.jobs where state <> 'completed')"
    slots = 512
    bulk = True
    blocking = False
    one_at_a_time = False

    async def install(self, place: Place) -> None:
        client = AsyncClient(_with_host(place.url))
        await client.migrate()
        await client.install_queue_storage()

    async def open(self, place: Place) -> None:
        self.client = AsyncClient(_with_host(place.url), max_connections=24)

        @self.client.task(Noop, queue="default")
        async def noop(job: Any) -> None:
            args = job.args
            await run(args if isinstance(args, dict) else asdict(args))

    async def enqueue(self, order: Order) -> None:
        await self.client.insert(Noop(**order.payload), queue="default")

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        jobs = [Noop(**order.payload) for order in orders]
        await self.client.enqueue_many_copy(jobs, queue="default")

    async def work(self, slots: int) -> None:
        await self.client.start(
            [{"name": "default", "max_workers": slots, "claim_batch_size": slots}]
        )
        await asyncio.Event().wait()


def _with_host(url: str) -> str:
    """Its driver wants a socket's folder where the host stands."""
    parts = urlsplit(url)
    told = dict(parse_qsl(parts.query))
    if parts.hostname or "host" not in told:
        return url
    place = f"{parts.username}@{quote(told['host'], safe='')}:{told.get('port', '5432')}"
    return urlunsplit(parts._replace(netloc=place, query=""))


def side() -> Side:
    return AwaSide()
