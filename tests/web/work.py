"""What the pages of work show: kinds with schemas, triggers, events, items, artifacts."""

from typing import TYPE_CHECKING, Any

from fairlane.core import calls
from fairlane.core.connect import send
from fairlane.scheduler import asking, store
from fairlane.scheduler.dispatcher import Dispatcher
from support.core import Core

if TYPE_CHECKING:
    from web.stage import Stage

XSS = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'`{{7*7}}"

REPORT: dict[str, Any] = {
    "type": "object",
    "required": ["report_id", "format", "period"],
    "additionalProperties": False,
    "properties": {
        "report_id": {"type": "integer", "minimum": 1, "description": "Which report"},
        "format": {"enum": ["pdf", "csv", "xlsx"], "default": "pdf"},
        "title": {"type": "string", "maxLength": 80},
        "share": {"type": "number"},
        "draft": {"type": "boolean", "default": False},
        "notify": {"type": "boolean"},
        "day": {"type": "string", "format": "date"},
        "due": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "regions": {"type": "array", "items": {"type": "string"}, "default": ["eu", "us"]},
        "period": {
            "type": "object",
            "required": ["from"],
            "description": "The days that it covers",
            "properties": {
                "from": {"type": "string", "format": "date"},
                "days": {"type": "integer", "default": 7},
            },
        },
        "token": {"type": "string", "writeOnly": True},
        "matrix": {"type": "array", "items": {"type": "array"}},
    },
}


async def dress_work(core: Core, stage: "Stage") -> None:
    await core.a_definition(
        "reports.build", description="Builds a report, and mails it", arg_schema=REPORT
    )
    await core.a_definition("files.sync", arg_schema={"type": "object"})
    await _items(core, stage)
    await _triggers(core, stage)
    await _events(core, stage)


async def _items(core: Core, stage: "Stage") -> None:
    """One that runs and names its parts, and one that has put something elsewhere."""
    await core.a_definition("export.files", queue="critical")
    worker = await core.a_worker(3600)
    for name in ("items", "artifacts"):
        stage.jobs[name] = await core.enqueue("acme", "export.files")
    await core.sweep()
    leases = {each.job_id: each for each in await core.claim(worker, 4, queue="critical")}
    lease = leases[stage.jobs["items"]]
    moves = [{"name": f"file-{n}.csv", "state": "completed", "again": False} for n in range(9)]
    moves += [{"name": "now.csv", "state": "in_progress", "again": True}]
    moves += [{"name": f"bad {XSS}", "state": "failed", "error": f"R2 {XSS}", "again": False}]
    report = {"job_id": lease.job_id, "attempt": lease.attempt, "lines": [], "items": moves}
    report["output"] = {"stdout": {"tail": f"the end {XSS}", "bytes": 4096}}
    report["progress"] = {"done": 10, "total": 20}
    await core.send(calls.report(lease.worker, [report]))
    result = {
        "rows": 7,
        "artifacts": [
            {"kind": "report", "url": "https://files.example.com/7.pdf"},
            {"kind": "raw", "url": "s3://raw/7", "expires_at": "2030-01-31T00:00:00Z"},
        ],
    }
    await core.finish(leases[stage.jobs["artifacts"]], result=result)


async def _triggers(core: Core, stage: "Stage") -> None:
    nightly = {
        "label": "Nightly report",
        "cron_expr": "30 8 * * 1-5",
        "timezone": "Europe/Berlin",
        "definition_key": "files.sync",
        "payload_template": {"day": "{{schedule.local_time}}"},
        "jitter_seconds": 60,
    }
    made = await store.create(core.conn, "acme", nightly)
    stage.names["schedule"] = str(made.id)
    stage.jobs["fired"] = await asking.fire(core.conn, made, None, "acme")
    paused = {**nightly, "label": f"Paused {XSS}"[:200], "is_enabled": False}
    await store.create(core.conn, "acme", {**paused, "cron_expr": "*/15 * * * *"})
    on_folder = {
        "label": "Resync a folder",
        "event_name": "provider.folder.*",
        "filter": {"size": {"gte": 10}},
        "definition_key": "files.sync",
        "payload_template": {"folder": "{{event.folder_id}}", "size": "{{event.size}}"},
        "dedupe_window_seconds": 0,
    }
    stage.names["on_event"] = str((await store.create(core.conn, "acme", on_folder)).id)
    broken = {**on_folder, "label": "Needs an owner", "filter": None}
    await store.create(
        core.conn, "acme", {**broken, "payload_template": {"owner": "{{event.owner}}"}}
    )


async def _events(core: Core, stage: "Stage") -> None:
    for number in range(12):
        name = "provider.folder.updated" if number % 3 else "billing.paid"
        data = {"folder_id": f"f-{number}", "size": number * 3, "note": XSS}
        if number % 2:
            data["owner"] = "ada"
        event = {"tenant": "acme", "name": name, "data": data, "id": f"evt/{number}"}
        await send(core.conn, calls.emit([event]))
    odd = {"tenant": "acme", "name": "odd.one", "data": {XSS: XSS}, "id": f"odd {XSS}"}
    await send(core.conn, calls.emit([odd]))
    dispatcher = Dispatcher()
    while await dispatcher.tick(core.conn):
        pass
    stage.names["event"] = "evt%2F10"
