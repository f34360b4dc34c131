"""What a tenant writes is text in a real browser, in every field and by every trick (S20)."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog

from attacks.polyglots import POLYGLOTS
from attacks.tally import tallied
from attacks.test_forgery import stage
from fairlane.core import calls
from fairlane.core.connect import send
from fairlane.scheduler import store
from support.core import Core
from web.browser import VIEW, Tab, chromium, need_chromium, sign_in
from web.stage import Stage

__all__ = ["stage"]

pytestmark = [pytest.mark.scene, pytest.mark.timeout(600)]
SOME = POLYGLOTS[:: len(POLYGLOTS) // 12]


async def infest(core: Core, stage: Stage) -> None:
    """Every polyglot in payload, keys and lines; some of them wherever a thing is made for each."""
    worker = uuid4()
    await send(core.conn, calls.register_worker(worker, "w", {"critical": 50}, lease_seconds=3600))
    many = {f"{number} {text}": text for number, text in enumerate(POLYGLOTS)}
    stage.jobs["infested"] = await core.enqueue("acme", "odd.kind", payload=many, queue="critical")
    lease = await core.claim_one(worker, "critical")
    item: dict[str, Any] = {
        "job_id": lease.job_id,
        "attempt": lease.attempt,
        "phase": POLYGLOTS[0],
        "progress": {"message": POLYGLOTS[4], "done": 1, "total": 2},
        "lines": [{"level": "info", "message": text} for text in POLYGLOTS],
        "items": [{"name": text, "state": "failed", "error": text} for text in POLYGLOTS[:60]],
        "output": {"stdout": {"tail": "\n".join(POLYGLOTS), "bytes": 9}},
    }
    await core.send(calls.report(worker, [item]))
    for text in SOME:
        named = {"correlation_id": text, "concurrency_key": text, "created_by": text}
        job = await core.enqueue("acme", "odd.kind", queue="critical", max_attempts=1, **named)
        held = await core.claim_one(worker, "critical")
        await core.fail(held, error={"type": text, "message": text, "traceback": text})
        await core.send(calls.note_dead_letter(job, text, "acme"))
        stage.jobs["infested_dead"] = job
        on = {"label": text[:100], "trigger_type": "event", "event_name": "e"}
        trigger = await store.create(core.conn, "acme", {**on, "definition_key": "odd.kind"})
        stage.names["infested_trigger"] = str(trigger.id)
        await core.send(calls.emit([{"tenant": "acme", "name": "e", "data": {text: text}}]))
        await core.send(calls.create_operation("acme", "cancel", {"ids": []}, text))
        await core.send(calls.save_view("acme", text[:60], "q=x"))


@pytest.fixture(scope="module")
def infested(stage: Stage) -> Stage:
    stage.do(lambda core: infest(core, stage))
    return stage


@pytest.fixture(scope="module")
def browser(infested: Stage) -> Iterator[Browser]:
    need_chromium()
    with chromium() as found:
        yield found


@pytest.fixture
def context(browser: Browser, infested: Stage) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport=VIEW)
    made.set_default_timeout(30_000)
    sign_in(made, infested.address, infested.tokens["operator"])
    yield made
    made.close()


PATHS = (
    *(f"/t/acme/jobs/{{infested}}?tab={tab}" for tab in ("logs", "payload", "attempts", "events")),
    *("/t/acme/jobs/{infested}", "/t/acme/jobs", "/t/acme/dlq", "/t/acme/dlq?view=list"),
    *("/t/acme/dlq/{infested_dead}", "/t/acme/triggers", "/t/acme/triggers/{infested_trigger}"),
    *("/t/acme/triggers/{infested_trigger}/edit", "/t/acme/events", "/t/acme/bulk"),
    *("/t/acme/audit", "/t/acme", "/ops", "/ops/jobs", "/ops/audit", "/ops/definitions"),
)
INJECTED = "main img, main iframe, main object, main embed, main script:not([src]):not([type])"


def dismissed(dialog: Dialog, dialogs: list[str]) -> None:
    dialogs.append(dialog.message)
    dialog.dismiss()


def test_nothing_that_was_written_runs_on_any_page(
    infested: Stage, context: BrowserContext
) -> None:
    dialogs: list[str] = []
    with tallied("polyglots in pages") as tally:
        tab = Tab(context.new_page())
        tab.page.on("dialog", lambda dialog: dismissed(dialog, dialogs))
        for path in PATHS:
            tab.page.goto(infested.address + path.format(**infested.jobs, **infested.names))
            tab.page.wait_for_load_state("load")
            tally.injected += len(POLYGLOTS) if "infested}" in path else len(SOME)
            tally.operations += 1
            wrong = tab.wrong + tab.page.evaluate("window.violations ?? []")
            tally.hold(not wrong, f"{path}: {wrong}")
            tally.hold(tab.page.evaluate("window.hacked") is None, f"{path} ran something")
            tally.hold(tab.page.locator(INJECTED).count() == 0, f"{path} has an element of theirs")
            tab.wrong.clear()
        tally.hold(not dialogs, f"dialogs: {dialogs}")


def test_what_was_written_is_what_is_read(infested: Stage, context: BrowserContext) -> None:
    """Letter by letter in the document; control and bidi characters may be shown as such."""
    with tallied("polyglots as text") as tally:
        page = context.new_page()
        job = infested.jobs["infested"]
        page.goto(f"{infested.address}/t/acme/jobs/{job}?tab=payload")
        payload = page.locator("main").text_content() or ""
        page.goto(f"{infested.address}/t/acme/jobs/{job}?tab=logs")
        lines = page.locator("main").text_content() or ""
        for text in POLYGLOTS:
            if not text.isprintable():
                continue
            tally.injected += 1
            written = json.dumps(text, ensure_ascii=False)[1:-1]
            tally.hold(written in payload, f"the payload does not show {text!r}")
            tally.hold(text in lines, f"the log does not show {text!r}")
    assert len(POLYGLOTS) > 200
