"""Something to look at: an app with six kinds of jobs, and a stream of them for four tenants.

The tasks only wait and now and then go wrong, as real ones do. `python -m fairlane.demo` keeps the
stream going; a worker runs it with `--app fairlane.demo:app`.
"""

import asyncio
import logging
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncpg

from fairlane import Fairlane, JobContext, Request
from fairlane.core import calls, connect
from fairlane.core.connect import send
from fairlane.database import database
from fairlane.errors import FairlaneError, TenantExists

log = logging.getLogger("fairlane.demo")

app = Fairlane()


# The tasks ------------------------------------------------------------------


@app.job("fax.send", queue="critical", timeout=30, max_attempts=3, retry_delays=[5, 15])
async def send_fax(ctx: JobContext, number: str, pages: int) -> dict[str, Any]:
    """Quick and urgent: critical work has slots of its own."""
    await asyncio.sleep(0.2 * pages)
    return {"number": number, "pages": pages}


@app.job("email.send", timeout=30, max_attempts=3, retry_delays=[5, 30])
async def send_email(ctx: JobContext, to: str, template: str) -> dict[str, Any]:
    """Short, and there are many of them."""
    await asyncio.sleep(random.uniform(0.1, 0.5))
    return {"to": to, "template": template}


@app.job("webhooks.deliver", timeout=15, max_attempts=5, retry_delays=[2, 5, 10, 20])
async def deliver_webhook(ctx: JobContext, url: str) -> dict[str, Any]:
    """Flaky: every third call meets a receiver that is having a bad day."""
    await asyncio.sleep(random.uniform(0.1, 0.8))
    if random.random() < 0.35:
        raise ConnectionError(f"{url} answered 503")
    return {"status": 200}


@app.job("reports.generate", queue="bulk", timeout=120, max_attempts=2, retry_delays=[10])
async def generate_report(ctx: JobContext, report_id: int, fmt: str = "pdf") -> dict[str, Any]:
    """Long enough to see it wait for its turn."""
    await asyncio.sleep(random.uniform(1, 4))
    return {"file": f"report-{report_id}.{fmt}", "rows": report_id % 9_000}


@app.job("video.transcode", queue="bulk", timeout=120, max_attempts=2, retry_delays=[10])
async def transcode(ctx: JobContext, video: str) -> dict[str, Any]:
    """Slow; those of one tenant share a key and run one after the other."""
    await asyncio.sleep(random.uniform(12, 20))
    return {"video": video, "formats": ["1080p", "720p"]}


@app.job("ledger.import", timeout=15, max_attempts=2, retry_delays=[3])
async def import_ledger(ctx: JobContext, file: str) -> None:
    """Never works: what becomes of it is a matter for a person."""
    await asyncio.sleep(0.3)
    raise ValueError(f"{file}: line 1 has 7 columns, expected 9")


# The stream -----------------------------------------------------------------

TENANTS = {
    "acme": ("pro", "Acme Insurance"),
    "harbor": ("starter", "Harbor Logistics"),
    "corner": ("free", "Corner Clinic"),
    "megacorp": ("pro", "Megacorp, the noisy one"),
}


@dataclass(frozen=True)
class Stream:
    """So many jobs a second of one kind, as long as not too many of them wait."""

    tenants: tuple[str, ...]
    key: str
    queue: str
    a_second: float
    most: int  # live jobs of the tenant in that queue


EVERYBODY = tuple(TENANTS)
STREAMS = (
    Stream(EVERYBODY, "fax.send", "critical", 0.3, 20),
    Stream(EVERYBODY, "email.send", "default", 1.0, 40),
    Stream(EVERYBODY, "webhooks.deliver", "default", 0.4, 40),
    Stream(EVERYBODY, "reports.generate", "bulk", 0.2, 12),
    Stream(("acme", "megacorp"), "video.transcode", "bulk", 0.02, 12),
    Stream(("harbor",), "ledger.import", "default", 0.1, 40),
)
# The noisy tenant sends its mail in floods; the others should not notice.
FLOOD, FLOOD_EVERY, FLOOD_BELOW = 250, 45, 40

PEOPLE = ("ada", "grace", "edsger", "barbara", "donald", "frances")
TEMPLATES = ("welcome", "invoice", "reminder")
DEAD_LETTERS_ENOUGH = 30

LIVE = """
select t.slug, q.name as queue, fairlane.backlog(t.id, q.name) as jobs
  from fairlane.tenant t
 cross join fairlane.queue q
 where t.slug = any ($1)
"""
PENDING = "select count(*) from fairlane.dead_letter where status = 'pending'"


def request(tenant: str, key: str) -> Request:
    """A believable job."""
    number = random.randrange(10_000)
    cid = f"demo-{random.randrange(16**8):08x}"
    match key:
        case "fax.send":
            pages = random.randint(1, 5)
            return send_fax.request(
                tenant=tenant, correlation_id=cid, number=f"+1-555-{number:04}", pages=pages
            )
        case "email.send":
            to, template = f"{random.choice(PEOPLE)}@example.com", random.choice(TEMPLATES)
            return send_email.request(tenant=tenant, correlation_id=cid, to=to, template=template)
        case "webhooks.deliver":
            url = f"https://hooks.example.com/{number}"
            return deliver_webhook.request(tenant=tenant, correlation_id=cid, url=url)
        case "reports.generate":
            return generate_report.request(tenant=tenant, correlation_id=cid, report_id=number)
        case "video.transcode":
            # One encoder a tenant.
            return transcode.request(
                tenant=tenant,
                correlation_id=cid,
                concurrency_key="encoder",
                video=f"clip-{number}.mov",
            )
        case _:
            return import_ledger.request(
                tenant=tenant, correlation_id=cid, file=f"ledger-{number}.csv"
            )


class Producer:
    """Adds a second's worth of jobs at each tick."""

    def __init__(self, conn: asyncpg.Connection) -> None:
        self._conn = conn
        self._ticks = 0

    async def prepare(self) -> None:
        """Tenants and definitions; what is there already is left as it is."""
        for slug, (plan, name) in TENANTS.items():
            with suppress(TenantExists):
                await send(self._conn, calls.create_tenant(slug, plan, name, {}))
        await app.register_through(partial(send, self._conn))

    async def tick(self) -> int:
        """Enqueue what is due, and say how much that was."""
        rows = await self._conn.fetch(LIVE, list(TENANTS))
        live = {(row["slug"], row["queue"]): row["jobs"] for row in rows}
        parked = await self._conn.fetchval(PENDING)
        wanted = [*self._steady(live, parked), *self._flood(live)]
        self._ticks += 1
        if wanted:
            async with self._conn.transaction():
                await app.enqueue_many(wanted, connection=self._conn)
        return len(wanted)

    def _steady(self, live: dict[tuple[str, str], int], parked: int) -> Iterator[Request]:
        for stream in STREAMS:
            if stream.key == "ledger.import" and parked >= DEAD_LETTERS_ENOUGH:
                continue
            for tenant in stream.tenants:
                count = int(stream.a_second) + (random.random() < stream.a_second % 1)
                if live.get((tenant, stream.queue), 0) < stream.most:
                    yield from (request(tenant, stream.key) for _ in range(count))

    def _flood(self, live: dict[tuple[str, str], int]) -> Iterator[Request]:
        if self._ticks % FLOOD_EVERY == 5 and live.get(("megacorp", "default"), 0) < FLOOD_BELOW:
            log.info("megacorp floods the default queue with %d mails", FLOOD)
            yield from (request("megacorp", "email.send") for _ in range(FLOOD))


async def produce(url: str) -> None:
    """Keep the stream going for ever; a database that is away is waited for."""
    while True:
        try:
            async with connect.connected(url, name="fairlane demo") as conn:
                producer = Producer(conn)
                await producer.prepare()
                log.info("jobs for %s, for ever", ", ".join(TENANTS))
                while True:
                    await producer.tick()
                    await asyncio.sleep(1)
        except (FairlaneError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            log.warning("the stream pauses: %s", " ".join(str(error).split()))
            await asyncio.sleep(3)


async def _until_stopped(url: str) -> None:
    task = asyncio.create_task(produce(url))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


def main() -> None:
    from fairlane import config
    from fairlane.observe.logs import log_to_stderr

    settings = config.load()
    log_to_stderr(settings)
    with database(settings, start=False) as url:
        asyncio.run(_until_stopped(url))


if __name__ == "__main__":
    main()
