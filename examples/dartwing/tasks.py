"""The methods that may run in the background, each with the numbers of its queue."""

import os
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
from permissions import org_context
from queue_config import QUEUE_CONFIG, get_queue_for_job

from fairlane import Fail, Fairlane, JobContext

GATEWAY = os.environ.get("APP_SERVER_URL", "http://127.0.0.1:8082")

app = Fairlane()


def method(path: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A task by its dotted path; what it may take is the word of QUEUE_CONFIG."""
    queue = get_queue_for_job(path)
    config = QUEUE_CONFIG[queue]
    return app.job(
        path,
        queue=queue,
        timeout=config["timeout_seconds"],
        max_attempts=config["retry_count"],
        retry_delays=config["retry_delay"],
        **options,
    )


# Faxes, mails and the like: the gateway takes the same delivery once, however often it comes -----


def delivers(way: str) -> Callable[..., Any]:
    async def deliver(ctx: JobContext, to: str, text: str = "") -> dict[str, Any]:
        headers = {"Idempotency-Key": str(ctx.job_id), "X-Organization": ctx.tenant}
        async with (
            aiohttp.ClientSession(raise_for_status=True) as http,
            http.post(f"{GATEWAY}/{way}", json={"to": to, "text": text}, headers=headers) as answer,
        ):
            delivered: dict[str, Any] = await answer.json()
            return delivered

    return deliver


for path in (
    *QUEUE_CONFIG["critical"]["job_types"],
    "dartwing_core.webhooks.dispatch",
    "dartwing_core.email.send",
):
    method(path)(delivers(path.rpartition(".")[2]))


# Documents ----------------------------------------------------------------------------------------


@method("dartwing_core.sync.process_delta")
async def process_delta(ctx: JobContext, task: str, title: str) -> None:
    """A change that came from a phone."""
    change = "update dartwing_task set title = $2 where name = $1 returning true"
    async with org_context(ctx) as documents:
        if not await documents.fetchval(change, task, title):
            raise Fail(f"Permission denied: {ctx.tenant} has no task {task}")


@method("dartwing_core.imports.process_batch")
async def process_batch(ctx: JobContext, tasks: list[dict[str, str]]) -> dict[str, int]:
    """All rows of a file, or none: what a row says of its organisation is not believed."""
    insert = """insert into dartwing_task (organization, name, title) values ($1, $2, $3)
                    on conflict (organization, name) do update set title = excluded.title"""
    rows = [(each.get("organization", ctx.tenant), each["name"], each["title"]) for each in tasks]
    async with org_context(ctx) as documents:
        await documents.executemany(insert, rows)
    return {"tasks": len(rows)}


@method("dartwing_core.reports.generate")
async def generate(ctx: JobContext) -> dict[str, int]:
    """Tasks by organisation. It asks for everybody's, and is answered with its own."""
    async with org_context(ctx) as documents:
        rows = await documents.fetch("select organization, count(*) from dartwing_task group by 1")
    return dict(rows)


@method("dartwing_core.exports.full_export", isolation="process")
def full_export(ctx: JobContext) -> dict[str, int]:
    """A library that nobody can interrupt does this; in a process of its own it can be killed."""
    with urllib.request.urlopen(f"{GATEWAY}/archive/{ctx.tenant}") as archive:
        return {"bytes": len(archive.read())}
