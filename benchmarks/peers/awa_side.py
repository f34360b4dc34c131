"""Awa: a core in Rust that calls tasks in Python, with large claims and its direct COPY."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from awa import AsyncClient
from benchmarks.peers.side import PAYLOAD, Side

WORKERS = 512


@dataclass
class Noop:
    report_id: int
    format: str
    folder: str
    to: str


JOB = Noop(**PAYLOAD)


class AwaSide:
    unfinished = "select exists (select from awa.jobs where state <> 'completed')"

    async def prepare(self, url: str, ran: Callable[[], None]) -> None:
        self.client = AsyncClient(_with_host(url), max_connections=24)
        await self.client.migrate()
        await self.client.install_queue_storage()

        @self.client.task(Noop, queue="default")
        async def noop(job: Any) -> None:
            ran()

    async def enqueue(self) -> None:
        await self.client.insert(JOB, queue="default")

    async def enqueue_many(self, count: int) -> None:
        await self.client.enqueue_many_copy([JOB] * count, queue="default")

    async def work(self) -> None:
        await self.client.start(
            [{"name": "default", "max_workers": WORKERS, "claim_batch_size": WORKERS}]
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
