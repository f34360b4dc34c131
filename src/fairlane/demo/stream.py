"""The demo's tenants, and jobs and events for them, second by second."""

import asyncio
import logging
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import asyncpg

from fairlane import Request
from fairlane.core import calls, connect
from fairlane.core.connect import send
from fairlane.definitions import apply
from fairlane.definitions.check import check_all
from fairlane.definitions.rows import queues
from fairlane.demo.past import Past
from fairlane.demo.tasks import (
    COMMANDS,
    app,
    deliver_webhook,
    generate_report,
    import_ledger,
    send_email,
    send_fax,
    transcode,
)
from fairlane.errors import FairlaneError, TenantExists

log = logging.getLogger("fairlane.demo")


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
    Stream(EVERYBODY, "disk.report", "default", 0.02, 40),
)
# Events come by themselves; a trigger makes jobs of them.
EVENT, EVENTS_A_SECOND = "provider.folder.updated", 0.15
PROVIDERS, FOLDERS = ("dropbox", "drive"), ("/contracts", "/photos", "/invoices/2026")
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
        case "disk.report":
            return Request(definition_key=key, payload={}, tenant=tenant, correlation_id=cid)
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
        written = check_all(COMMANDS, queues=await queues(self._conn), what="the demo")
        await apply.apply(self._conn, written)
        await app.register_through(partial(send, self._conn))
        await Past(self._conn).make(list(TENANTS))

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
        await self._events()
        return len(wanted)

    async def _events(self) -> None:
        for tenant in TENANTS:
            if random.random() < EVENTS_A_SECOND:
                what = {"provider": random.choice(PROVIDERS), "folder": random.choice(FOLDERS)}
                async with self._conn.transaction():
                    await app.emit(EVENT, what, tenant=tenant, connection=self._conn)

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
