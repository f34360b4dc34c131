"""A real server on a real database, with everything on it that a page can show."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import uvicorn

from fairlane.access import tokens
from fairlane.access.roles import Role
from fairlane.api.app import asgi
from fairlane.api.limits import Limits
from fairlane.api.serving import Server, address_of, listen
from fairlane.config import Settings
from fairlane.core import calls
from fairlane.core.connect import send
from support.core import Core
from web.work import dress_work

ROLES = ("viewer", "member", "admin", "operator")
XSS = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'`{{7*7}}"


@dataclass
class Stage:
    """`tokens` by role (`acme` is theirs), `jobs` by what is special about them."""

    url: str
    address: str = ""
    tokens: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, UUID] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """What fills the holes of the other paths, by the hole."""

    def do(self, work: Any) -> Any:
        """Run `async def work(core)` on a connection of its own."""

        async def run() -> Any:
            conn = await asyncpg.connect(self.url)
            try:
                return await work(Core(conn))
            finally:
                await conn.close()

        # A thread of its own: the browser's driver has a loop in this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(run())).result()


async def dress(core: Core, stage: Stage) -> None:
    """Tenants, kinds, and a job in every state."""
    for slug in ("acme", "globex", "initech", "umbrella", "empty"):
        await core.a_tenant(slug, max_running=100)
    await core.a_definition("sync_crm", retry_delays=[20], max_attempts=5, timeout_seconds=900)
    await core.a_definition("email.send", max_attempts=1)
    await core.a_definition("reports.generate", queue="bulk")
    await core.a_definition("odd.kind", description=XSS)
    for role in ROLES:
        tenant = None if role == "operator" else "acme"
        made = await tokens.create(core.conn, Role(role), tenant=tenant, name=f"a {role}")
        stage.tokens[role] = made.token
    stage.tokens["worker"] = (await tokens.create(core.conn, Role.WORKER)).token
    rival = await tokens.create(core.conn, Role.ADMIN, tenant="globex")
    stage.tokens["rival"] = rival.token
    await _past(core)
    await _used(core)
    await _work(core, stage)
    await dress_work(core, stage)


async def _past(core: Core) -> None:
    """An hour of jobs that have ended, in waves."""
    await core.fetch(
        """
        insert into fairlane.history (id, tenant_id, definition_id, queue, status, priority,
          payload, scheduled_for, created_at, queued_at, started_at, finished_at, attempt,
          forgiven, lost, max_attempts, source, replays)
        select fairlane.uuid7(at - wait), t.id, d.id, 'default',
               case when n % 29 = 0 then 'failed' else 'succeeded' end, 100, '{}',
               at - wait, at - wait, at - wait, at, at + interval '1 second', 1, 0, 0, 3,
               'manual', 0
          from generate_series(1, 60) minute
         cross join lateral (select fairlane.clock() - make_interval(mins => 61 - minute)) m (at)
         cross join lateral (select make_interval(secs => 0.4 + (minute * 7 % 13) / 9.0)) w (wait)
         cross join lateral generate_series(1, 14 + (9 * sin(minute / 6.0))::int + minute % 4) n
          join fairlane.tenant t on t.slug = (array['acme', 'globex', 'initech'])[n % 3 + 1]
          join fairlane.definition d on d.key = 'email.send'
        """
    )


async def _used(core: Core) -> None:
    """What was used in the three weeks before."""
    await core.fetch(
        """
        insert into fairlane.rollup (hour, tenant_id, queue, definition_key, status, jobs, attempts,
                                     run_seconds, wait_seconds, longest_seconds)
        select date_trunc('hour', fairlane.clock()) - make_interval(days => day), t.id, 'default',
               'email.send', status, n, n + n / 10, n * 1.7, n * 0.4, 9
          from generate_series(1, 21) day
         cross join (values ('succeeded', 1.0), ('failed', 0.05),
                            ('canceled', 0.02)) s (status, part)
         cross join lateral (select ((2600 + 900 * sin(day / 2.0)) * part)::int) c (n)
          join fairlane.tenant t on t.slug = 'acme'
        """
    )


async def _work(core: Core, stage: Stage) -> None:
    worker = uuid4()
    queues = {"default": 16, "bulk": 4, "critical": 4}
    await send(core.conn, calls.register_worker(worker, "wk-7f3a", queues, lease_seconds=3600))
    for number in range(60):
        await core.enqueue(("acme", "globex", "initech")[number % 3], "email.send")
    while leases := await core.claim(worker, 60):
        bad = [lease for lease in leases if lease.tenant == "acme"][:2]
        for lease in bad:
            await core.fail(lease, error={"type": "SMTPError", "message": "mailbox full"})
            stage.jobs["dead_letter"] = lease.job_id
        good = [lease for lease in leases if lease not in bad]
        await core.finish(*good, result={"sent": True})
        stage.jobs["succeeded"] = next(each.job_id for each in good if each.tenant == "acme")
    stage.jobs["failed"] = await core.enqueue("acme", "sync_crm")
    (lease,) = await core.claim(worker, 1)
    await core.fail(lease, final=True, error={"type": "Unauthorized", "message": "401 from CRM"})
    stage.jobs["canceled"] = await core.enqueue("acme", "sync_crm")
    await core.cancel(stage.jobs["canceled"])
    stage.jobs["retrying"] = await core.enqueue("acme", "sync_crm")
    (lease,) = await core.claim(worker, 1)
    error = {"type": "TimeoutError", "message": "upstream took longer than 30 s"}
    await core.fail(lease, error=error)
    payload = {"account_id": 88213, "since": "2026-11-14", "dry_run": False}
    stage.jobs["running"] = await core.enqueue(
        "acme", "sync_crm", payload=payload, dedupe_key="crm:2026-11-15", correlation_id="crm-1"
    )
    for tenant in ("globex", "initech"):
        await core.enqueue(tenant, "sync_crm")
    leases = await core.claim(worker, 5)
    lease = next(each for each in leases if each.job_id == stage.jobs["running"])
    said = (
        ("info", "phase: Extract"),
        ("info", "extract: opened s3://acme-exports/2026-11.parquet"),
        ("info", "phase: Load"),
        ("warning", "transform: 312 rows without currency, using account default"),
        ("info", "load: batch 1/48 written in 212 ms"),
        ("error", XSS),
    )
    await report(core, lease, *said, phase="Load", done=20, total=48)
    stage.jobs["xss"] = await core.enqueue(
        "acme",
        "odd.kind",
        payload={"text": XSS, XSS: 1},
        correlation_id=XSS,
        concurrency_key=XSS[:60],
        created_by=XSS,
    )
    stage.jobs["queued"] = await core.enqueue("acme", "reports.generate")
    await core.enqueue("umbrella", "reports.generate")
    await core.sweep()
    await _dead(core, stage)


async def _dead(core: Core, stage: Stage) -> None:
    """Dead letters of several causes, with what was printed, notes, and bulk operations."""
    await core.a_definition(
        "invoices.pull",
        max_attempts=1,
        queue="critical",
        redact=["api_key"],
        arg_schema={
            "type": "object",
            "properties": {
                "account": {"type": "integer", "minimum": 1},
                "api_key": {"type": "string"},
            },
            "required": ["account"],
        },
    )
    worker = await core.a_worker(3600)
    limits = {"max_running": 100, "max_backlog": 500, "starts_per_minute": 600}
    await core.send(calls.set_tenant("acme", limits))
    causes = [f"account {number} answered 503" for number in (4711, 4712, 4713)]
    for message in (*causes, "the certificate of crm.example has expired", XSS):
        payload = {"account": 7, "api_key": "of-nobody-else"}
        job = await core.enqueue("acme", "invoices.pull", payload=payload, correlation_id=XSS[:90])
        lease = await core.claim_one(worker, "critical")
        said = {"stdout": {"tail": "GET /invoices\n503\n" + XSS, "bytes": 91}}
        item = {"job_id": job, "attempt": lease.attempt, "output": said}
        await core.send(calls.report(lease.worker, [item]))
        trace = 'Traceback (most recent call last):\n  File "pull.py", line 12, in pull'
        await core.fail(lease, error={"type": "HttpError", "message": message, "traceback": trace})
        stage.jobs["dead_xss" if message is XSS else "dead"] = job
    await core.send(calls.note_dead_letter(stage.jobs["dead_xss"], XSS, "acme"))
    asked = {"definition_key": "reports.generate"}
    (row,) = await core.send(calls.create_operation("acme", "cancel", asked, XSS))
    stage.jobs["operation"] = row["id"]


async def report(
    core: Core, lease: Any, *lines: tuple[str, str], phase: str = "", **far: Any
) -> None:
    """What a worker tells of a running job."""
    item: dict[str, Any] = {"job_id": lease.job_id, "attempt": lease.attempt}
    item["lines"] = [{"level": level, "message": text} for level, text in lines]
    if phase:
        item["phase"] = phase
    if far:
        item["progress"] = far
    await core.send(calls.report(lease.worker, [item]))


@contextlib.contextmanager
def serving(url: str, **options: Any) -> Iterator[str]:
    """The server of `fairlane server`, in a thread."""
    app = options.pop("app", None) or asgi(
        url, settings=Settings(**options), limits=Limits(rate=0), pages=True
    )
    with listen("127.0.0.1", 0) as listening:
        server = Server(
            uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True
        )
        thread.start()
        try:
            yield address_of(listening)
        finally:
            server.should_exit = True
            thread.join(10)
