"""What the demo's jobs do."""

import asyncio
import logging
import random
from typing import Any

from fairlane import Fairlane, JobContext

app = Fairlane()
log = logging.getLogger("fairlane.demo")


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
    """Long enough to see it wait for its turn, and then to see how far it has come."""
    ctx.phase("query", report=report_id)
    await asyncio.sleep(random.uniform(0.5, 1))
    pages = random.randint(5, 20)
    ctx.phase("render")
    for page in range(1, pages + 1):
        await asyncio.sleep(random.uniform(0.05, 0.3))
        ctx.progress(page, pages, f"page {page}")
        log.info("rendered page %d", page, extra={"fmt": fmt})
    ctx.phase("upload")
    return {"file": f"report-{report_id}.{fmt}", "rows": report_id % 9_000}


@app.job("video.transcode", queue="bulk", timeout=120, max_attempts=2, retry_delays=[10])
async def transcode(ctx: JobContext, video: str) -> dict[str, Any]:
    """Slow; those of one tenant share a key and run one after the other."""
    for second in range(1, 101):
        await asyncio.sleep(random.uniform(0.12, 0.2))
        ctx.progress(second, 100)
    return {"video": video, "formats": ["1080p", "720p"]}


@app.job("ledger.import", timeout=15, max_attempts=2, retry_delays=[3])
async def import_ledger(ctx: JobContext, file: str) -> None:
    """Never works: what becomes of it is a matter for a person."""
    ctx.log("reading", file=file)
    await asyncio.sleep(0.3)
    raise ValueError(f"{file}: line 1 has 7 columns, expected 9")


@app.on("provider.folder.updated", label="Sync what was changed")
@app.job("folders.sync", timeout=60, max_attempts=3, retry_delays=[5, 30])
async def sync_folder(ctx: JobContext, provider: str, folder: str) -> dict[str, Any]:
    """Made by an event. Its files come one by one, and now and then one does not."""
    ctx.phase("listing", provider=provider)
    files = [f"{folder}/{name}" for name in ("plan.pdf", "budget.xlsx", "photo.jpg", "notes.md")]

    async def fetch(file: str) -> None:
        async with ctx.item(file):
            await asyncio.sleep(random.uniform(0.2, 3))
            if random.random() < 0.04:
                raise ConnectionError("the provider closed the connection")

    ctx.phase("downloading")
    ctx.items(files)
    await asyncio.gather(*map(fetch, files))
    ctx.phase("indexing")
    return {"files": len(files)}


@app.cron("*/5 * * * *", tenant="acme", tz="America/New_York", label="Digest every five minutes")
@app.cron("0 2 * * *", tenant="harbor", tz="Europe/Berlin", label="Digest at two in the morning")
@app.job("digest.build", timeout=60, max_attempts=2, retry_delays=[10])
async def build_digest(ctx: JobContext) -> dict[str, Any]:
    """Made by the clock."""
    ctx.phase("collect")
    await asyncio.sleep(random.uniform(1, 3))
    return {"articles": random.randint(3, 40)}


# What needs no code of ours: any worker runs it.
COMMANDS = (
    {
        "key": "disk.report",
        "description": "How full the worker's disk is",
        "executor": "command",
        "command": {"argv": ["df", "-h", "--", "{payload.folder}"]},
        "arg_schema": {
            "type": "object",
            "properties": {"folder": {"type": "string", "default": "/"}},
            "additionalProperties": False,
        },
        "timeout_seconds": 30,
        "max_attempts": 2,
    },
)
