"""Drain and forget a worker, run a job sooner, assign a dead letter, choose columns, undo."""

import base64
import json
import re
import time
from typing import Any
from uuid import UUID

import httpx2
from playwright.sync_api import expect

from fairlane.core import calls
from support.core import Core
from web.conftest import Visit
from web.stage import Stage
from web.test_pages import client

STATE = "select state from fairlane.workers where id = $1"
PRIORITY = "select priority from fairlane.job where id = $1"
ASSIGNEE = "select assignee from fairlane.dead_letter where id = $1"
PAUSED = "select paused_at is not null from fairlane.queue where name = 'bulk'"


def one(stage: Stage, sql: str, *args: Any) -> Any:
    return stage.do(lambda core: core.one(sql, *args))


def token_of(http: httpx2.Client, path: str) -> str:
    found = re.search(r'name="_token" value="(\w+)"', http.get(path).text)
    assert found is not None
    return found[1]


def a_worker(stage: Stage, name: str) -> UUID:
    async def made(core: Core) -> UUID:
        worker = await core.a_worker(3600)
        await core.fetch("update fairlane.worker set name = $2 where id = $1", worker, name)
        return worker

    found: UUID = stage.do(made)
    return found


def test_a_worker_is_drained_and_once_it_has_stopped_forgotten(visit: Visit, stage: Stage) -> None:
    worker = a_worker(stage, "wk-drain")
    page = visit("/ops/workers", "operator").page
    row = page.locator(f"#row-{worker}")
    row.get_by_role("button", name="Drain wk-drain").click()
    page.locator("#confirm [value=yes]").click()
    expect(page.locator("#toasts")).to_contain_text("wk-drain is asked to drain")
    expect(row).to_contain_text("Draining")
    expect(row.get_by_role("button")).to_have_count(0)

    stage.do(lambda core: core.send(calls.stop_worker(worker)))
    expect(row).to_contain_text("Stopped")
    row.get_by_role("button", name="Forget wk-drain").click()
    expect(row).to_have_count(0)
    expect(page.locator("#toasts")).to_contain_text("wk-drain is forgotten")
    assert one(stage, STATE, worker) is None


def test_a_worker_that_lives_is_not_forgotten_and_says_why(stage: Stage) -> None:
    worker = a_worker(stage, "wk-live")
    with client(stage, "operator") as http:
        path = f"/ops/workers/{worker}"
        form = {"_token": token_of(http, path)}
        answer = http.post(f"{path}/forget", data=form)
        assert (answer.status_code, "drain it first" in answer.text) == (409, True)
        answer = http.post(f"{path}/drain", data=form, follow_redirects=True)
        assert "It was asked" in answer.text
        assert one(stage, STATE, worker) == "draining"
    stage.do(lambda core: core.send(calls.stop_worker(worker)))
    with client(stage, "admin") as http:
        assert http.post(f"/ops/workers/{worker}/forget").status_code == 403


def waiting(stage: Stage) -> UUID:
    """Two that nobody claims, for no worker is there; the second."""

    async def made(core: Core) -> UUID:
        await core.a_definition("waits.here", queue="bulk")
        await core.enqueue("umbrella", "waits.here", priority=70)
        return await core.enqueue("umbrella", "waits.here")

    found: UUID = stage.do(made)
    return found


def test_a_waiting_job_runs_sooner_by_a_click_a_number_and_back(visit: Visit, stage: Stage) -> None:
    job = waiting(stage)
    page = visit(f"/t/umbrella/jobs/{job}", "operator").page
    page.get_by_role("button", name="Run sooner").click()
    expect(page.locator("#toasts")).to_contain_text("priority 69, was 100")
    expect(page.locator("#job_side")).to_contain_text("69")
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("Its priority is 100, was 69")
    expect(page.locator("#job_side")).to_contain_text("100, normal")
    page.get_by_label("Another priority").fill("-5")
    page.get_by_role("button", name="Set").click()
    expect(page.locator("#job_side")).to_contain_text("-5")
    assert one(stage, PRIORITY, job) == -5


def test_a_job_that_runs_meanwhile_is_not_moved_and_says_so(stage: Stage) -> None:
    job = stage.jobs["running"]
    with client(stage, "member") as http:
        path = f"/t/acme/jobs/{job}"
        assert "Run sooner" not in http.get(path).text
        form = {"_token": token_of(http, path), "priority": "1"}
        answer = http.post(f"{path}/priority", data=form, headers={"X-Quiet": "1"})
        assert (answer.status_code, "is running" in answer.json()["said"]) == (409, True)
        for wrong in ("soon", "1.5", str(2**31)):
            answer = http.post(f"{path}/priority", data={**form, "priority": wrong})
            assert (answer.status_code, "lower goes first" in answer.text) == (422, True)
    with client(stage, "viewer") as http:
        assert http.post(f"{path}/priority", data={"priority": "1"}).status_code == 403


def test_a_dead_letter_is_assigned_and_found_by_whose_it_is(stage: Stage) -> None:
    dead = stage.jobs["dead"]
    path = f"/t/acme/dlq/{dead}"
    with client(stage, "admin") as http:
        form = {"_token": token_of(http, path)}
        told = http.post(f"{path}/assign", data={**form, "to": "me"}, follow_redirects=True)
        me = one(stage, ASSIGNEE, dead)
        assert f"{me} looks after it." in told.text
        assert f'id="row-{dead}"' in http.get("/t/acme/dlq?view=list&assignee=me").text
        assert f'id="row-{dead}"' not in http.get("/t/acme/dlq?view=list&assignee=nobody").text
        assert me in http.get("/t/acme/dlq").text, "its group says so"

        http.post(f"{path}/assign", data={**form, "to": "name", "assignee": "grace <b>"})
        assert "grace &lt;b&gt;" in http.get(path).text
        found = http.get("/t/acme/dlq?view=list&assignee=grace <b>").text
        assert f'id="row-{dead}"' in found
        told = http.post(f"{path}/assign", data={**form, "to": "nobody"}, follow_redirects=True)
        assert "Nobody looks after it." in told.text
        assert one(stage, ASSIGNEE, dead) is None
    with client(stage, "member") as http:
        assert "Assign to me" not in http.get(path).text
        assert http.post(f"{path}/assign", data={"to": "me"}).status_code == 403


def test_what_was_resolved_is_taken_back_by_undo_without_a_script(
    visit: Visit, stage: Stage
) -> None:
    dead = stage.jobs["dead_letter"]
    tab = visit(f"/t/acme/dlq/{dead}", "admin", js=False)
    tab.checks = False
    tab.page.get_by_role("button", name="Resolve").click()
    expect(tab.page.locator("#toasts")).to_contain_text("Resolved.")
    expect(tab.page.get_by_role("button", name="Reopen")).to_be_visible()
    tab.page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(tab.page.locator("#toasts")).to_contain_text("Reopened")
    expect(tab.page.locator("#letter_head")).to_contain_text("Pending")


def test_a_pause_is_undone_from_the_toast(visit: Visit, stage: Stage) -> None:
    page = visit("/ops/queues/bulk", "operator").page
    page.get_by_role("button", name="Pause queue").click()
    if page.locator("#confirm").is_visible():
        page.locator("#confirm [value=yes]").click()
    expect(page.get_by_role("button", name="Resume queue")).to_be_visible()
    assert one(stage, PAUSED) is True
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Pause queue")).to_be_visible()
    assert one(stage, PAUSED) is False


def test_every_switch_says_how_it_is_taken_back(stage: Stage) -> None:
    """Done and undone by what the answer says, each way."""
    trigger, kind = stage.names["schedule"], stage.names["definition"]
    switches = {
        "/ops/queues/bulk": ("pause", "resume", {}),
        "/ops/tenants/umbrella": ("pause", "resume", {}),
        f"/ops/definitions/{kind}": ("pause", "resume", {}),
        f"/t/acme/triggers/{trigger}": ("switch", "switch", {"on": ""}),
    }
    with client(stage, "operator") as http:
        for path, (there, back, fields) in switches.items():
            form = {"_token": token_of(http, path)}
            quiet = {"X-Quiet": "1"}
            done = http.post(f"{path}/{there}", data={**form, **fields}, headers=quiet).json()
            assert done["undo"]["url"] == f"{path}/{back}", path
            undone = http.post(
                done["undo"]["url"], data={**form, **done["undo"]["fields"]}, headers=quiet
            )
            assert undone.json()["undo"]["url"] == f"{path}/{there}", path


def test_an_undo_that_nobody_made_leads_nowhere(stage: Stage) -> None:
    forged = (
        ["logout", [], {}],
        ["queue_pause", [], {}],
        ["trigger_switch", ["acme"], {}],
        ["no_such_page", ["x"], {}],
        "queue_pause",
        [["queue_pause"], "x", 7],
    )
    with client(stage, "operator") as http:
        for undo in forged:
            said = json.dumps({"said": "Look here", "undo": undo}).encode()
            cookie = base64.urlsafe_b64encode(said).decode()
            answer = http.get("/ops/queues", headers={"Cookie": cookies(http, cookie)})
            assert (answer.status_code, ">Undo<" in answer.text) == (200, False), undo


def cookies(http: httpx2.Client, said: str) -> str:
    held = "; ".join(f"{name}={value}" for name, value in http.cookies.items())
    return f"{held}; fairlane_said={said}"


def test_columns_and_density_are_chosen_without_a_script_and_kept(
    visit: Visit, stage: Stage
) -> None:
    tab = visit("/t/acme/jobs", "viewer", js=False)
    tab.checks = False
    page = tab.page
    heads = page.locator("#jobs thead th")
    assert "Worker" in heads.all_inner_texts()
    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_label("Worker").uncheck()
    page.get_by_label("Priority").check()
    page.get_by_label("Compact").check()
    page.get_by_role("button", name="Show these").click()
    told = heads.all_inner_texts()
    assert ("Worker" in told, "Priority" in told) == (False, True)
    expect(page.locator("html")).to_have_attribute("data-density", "compact")
    cells = page.locator("#jobs tbody tr").first.locator("td")
    assert cells.count() == heads.count()

    page.goto(f"{stage.address}/t/acme/jobs?state=running")
    assert heads.all_inner_texts() == told, "kept"
    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_label("Normal").check()
    page.get_by_role("button", name="As usual").click()
    assert "Worker" in heads.all_inner_texts()


def test_how_long_a_row_runs_is_no_change_and_the_browser_counts(
    visit: Visit, stage: Stage
) -> None:
    path = f"/ops/workers/{stage.names['worker']}"
    with client(stage, "operator") as http:
        headers = {"X-Fragment": "worker"}
        first = http.get(path, headers=headers)
        assert 'data-as="for"' in first.text
        deadline = time.monotonic() + 3
        while (later := http.get(path, headers=headers)).text == first.text:
            assert time.monotonic() < deadline, "a second passes, and the text tells it"
        assert later.headers["etag"] == first.headers["etag"]
        headers["If-None-Match"] = first.headers["etag"]
        assert http.get(path, headers=headers).status_code == 304
    cell = visit(path, "operator").page.locator('[data-as="for"]').first
    was = cell.inner_text()
    expect(cell).not_to_have_text(was)
