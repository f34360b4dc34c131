"""Running jobs by hand, and the lists of jobs: files, views, all that match."""

import csv
import io
import json
import re
from typing import Any

from playwright.sync_api import Page, expect

from support.core import Core
from web.conftest import Visit
from web.stage import Stage
from web.test_pages import client
from web.work import XSS

RUN = "/t/acme/jobs/new?kind=reports.build"


def newest(stage: Stage, key: str) -> dict[str, Any]:
    async def read(core: Core) -> dict[str, Any]:
        rows = await core.fetch(
            "select j.id, j.payload::text as payload, j.priority, j.dedupe_key, j.retry_of,"
            " j.scheduled_for > j.created_at as later, j.concurrency_key"
            "  from fairlane.job j join fairlane.definition d on d.id = j.definition_id"
            " where d.key = $1 order by j.id desc limit 1",
            key,
        )
        return {**dict(rows[0]), "payload": json.loads(rows[0]["payload"])}

    found: dict[str, Any] = stage.do(read)
    return found


def fault_of(page: Page, label: str) -> str:
    """What is told at the field of this label."""
    found = page.get_by_label(label, exact=False).first.evaluate(
        "field => field.closest('.field').querySelector('.fault')?.textContent ?? ''"
    )
    return str(found)


def test_a_job_is_run_by_the_form_of_its_schema_without_javascript(
    visit: Visit, stage: Stage
) -> None:
    tab = visit("/t/acme/jobs/new", "member", js=False)
    tab.checks = False
    page = tab.page
    page.locator("#filter").fill("BUILDS A")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="reports.build").click()
    expect(page.get_by_label("days")).to_have_value("7")
    page.get_by_label("report_id").fill("seven")
    page.get_by_label("Priority").fill("high")
    page.get_by_role("button", name="Run", exact=True).click()
    assert fault_of(page, "report_id") == "give a whole number"
    assert fault_of(page, "Priority") == "give a whole number; lower goes first"
    page.get_by_label("report_id").fill("7")
    page.get_by_label("Priority").fill("5")
    page.get_by_role("button", name="Run", exact=True).click()
    assert fault_of(page, "from") == "is missing", "told inside the object, by its pointer"
    page.get_by_label("from").fill("2026-11-01")
    page.get_by_label("regions").fill("eu\n\nasia")
    page.get_by_label("share").fill("0.5")
    page.get_by_label("notify").select_option("true")
    page.get_by_label("due").fill("2026-11-16T09:00")
    page.get_by_label("matrix").fill("[[1], [2]]")
    page.get_by_label("title").fill(XSS[:80])
    page.get_by_label("token").fill("hunter2")
    page.get_by_label("Dedupe key").fill("by-hand")
    page.get_by_label("Concurrency key").fill("one-at-a-time")
    page.get_by_label("Run at").fill("2031-01-01T10:00")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("enqueued")
    job = newest(stage, "reports.build")
    assert job["payload"] == {
        "report_id": 7,
        "format": "pdf",
        "title": XSS[:80],
        "share": 0.5,
        "draft": False,
        "notify": True,
        "due": "2026-11-16T09:00:00+00:00",
        "regions": ["eu", "asia"],
        "period": {"from": "2026-11-01", "days": 7},
        "token": "hunter2",
        "matrix": [[1], [2]],
    }
    assert (job["priority"], job["dedupe_key"], job["later"]) == (5, "by-hand", True)
    assert job["concurrency_key"] == "one-at-a-time"


def test_what_was_typed_is_kept_when_the_form_becomes_json_and_back(
    visit: Visit, stage: Stage
) -> None:
    tab = visit(RUN, "member")
    page = tab.page
    page.get_by_label("report_id").fill("9")
    page.get_by_role("button", name="Edit as JSON").click()
    raw = page.get_by_label("Payload as JSON")
    payload = json.loads(raw.input_value())
    assert payload == {
        "report_id": 9,
        "format": "pdf",
        "draft": False,
        "regions": ["eu", "us"],
        "period": {"days": 7},
    }
    raw.fill('{"report_id": }')
    page.get_by_role("button", name="Edit as a form").click()
    assert "this is not JSON" in fault_of(page, "Payload as JSON")
    payload["period"]["from"] = "2026-11-02"
    page.get_by_label("Payload as JSON").fill(json.dumps(payload))
    page.get_by_role("button", name="Edit as a form").click()
    expect(page.get_by_label("report_id")).to_have_value("9")
    page.get_by_role("button", name="Run and watch").last.click()
    expect(page.locator("h1")).to_have_text("reports.build")
    assert newest(stage, "reports.build")["payload"]["period"]["from"] == "2026-11-02"
    assert all("422" in said for said in tab.wrong), "the browser tells of the refusal, of no more"
    tab.wrong.clear()


def test_a_job_is_run_again_with_an_edited_payload_and_its_secret_stays(
    visit: Visit, stage: Stage
) -> None:
    payload = {
        "report_id": 1,
        "format": "csv",
        "period": {"from": "2026-10-01"},
        "token": "hunter2",
    }
    old = stage.do(lambda core: core.enqueue("acme", "reports.build", payload=payload))
    page = visit(f"/t/acme/jobs/{old}", "member").page
    page.get_by_role("link", name="Run a copy").click()
    expect(page.get_by_label("token")).to_have_value("[redacted]")
    page.get_by_label("format").select_option(label="xlsx")
    page.get_by_role("button", name="Run and watch").last.click()
    expect(page.locator("dt", has_text="Repeats").locator("+ dd a")).to_be_visible()
    assert "hunter2" not in page.content()
    new = newest(stage, "reports.build")
    edited = {**payload, "format": "xlsx", "period": {"from": "2026-10-01", "days": 7}}
    assert new["payload"] == {**edited, "draft": False, "regions": ["eu", "us"]}
    assert new["retry_of"] == old


def test_a_secret_does_not_come_to_light_by_another_definition(stage: Stage) -> None:
    """The form says which job it edits; its definition is that job's, whatever else is said."""
    payload = {"report_id": 1, "format": "csv", "period": {"from": "2026-10-01"}, "token": "hushed"}
    old = stage.do(lambda core: core.enqueue("acme", "reports.build", payload=payload))
    with client(stage, "member") as http:
        shown = http.get(f"/t/acme/jobs/new?from={old}").text
        names = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)">', shown)
        form = dict(names) | {"kind": "files.sync", "as": "raw", "do": "watch"}
        form["raw"] = json.dumps({**payload, "token": "[redacted]"})
        answer = http.post("/t/acme/jobs/new", data=form)
        assert answer.status_code == 303
        made = http.get(answer.headers["location"]).text
    assert "hushed" not in made
    new = newest(stage, "reports.build")
    assert (new["retry_of"], new["payload"]["token"]) == (old, "hushed"), "of the same definition"


def test_a_refusal_of_the_engine_keeps_what_was_typed(visit: Visit, stage: Stage) -> None:
    async def fill(core: Core) -> None:
        await core.a_tenant("full", max_backlog=1, backlog_policy="reject")
        await core.enqueue("full", "files.sync")
        await core.sweep()

    stage.do(fill)
    tab = visit("/t/full/jobs/new?kind=reports.build", "operator", js=False)
    tab.checks = False
    tab.page.get_by_label("report_id").fill("4711")
    tab.page.get_by_label("from").fill("2026-11-01")
    tab.page.get_by_role("button", name="Run", exact=True).click()
    expect(tab.page.locator(".alert")).to_contain_text("its limit is 1")
    expect(tab.page.get_by_label("report_id")).to_have_value("4711")


def test_where_nothing_may_run_the_page_says_how_to_define_it(stage: Stage) -> None:
    with client(stage, "member") as http:
        assert "No kind of job fits" in http.get("/t/acme/jobs/new?q=zzz").text


def test_lists_come_as_files_of_the_same_filter(stage: Stage) -> None:
    with client(stage, "viewer") as http:
        answer = http.get("/t/acme/jobs.json?state=dead")
        jobs = answer.json()["items"]
        assert jobs
        assert {job["status"] for job in jobs} == {"dead_letter"}
        text = http.get("/t/acme/jobs.csv?state=dead")
        rows = list(csv.DictReader(io.StringIO(text.text)))
        assert [row["id"] for row in rows] == [job["id"] for job in jobs]
        assert "SMTPError: mailbox full" in {row["error"] for row in rows}
        assert "attachment" in text.headers["content-disposition"]
        assert len(http.get("/t/acme/jobs.json").json()["items"]) > 200, "more than a page"
        wrong = http.get("/t/acme/jobs.csv?since=soon")
        assert wrong.status_code == 422
        assert "no span of time" in wrong.text


def test_views_are_kept_by_name_each_by_their_own(visit: Visit, stage: Stage) -> None:
    page = visit("/t/acme/jobs?state=failed,dead&kind=email.send", "viewer").page
    page.get_by_text("Keep this view").click()
    page.get_by_label("Name of the view").fill(XSS[:60])
    page.get_by_role("button", name="Keep", exact=True).click()
    page.goto(f"{stage.address}/t/acme/jobs")
    page.get_by_role("navigation", name="Your views").get_by_role("link").click()
    expect(page.locator("#filter")).to_have_value("state:failed,dead kind:email.send")
    with client(stage, "member") as http:
        assert "Your views" not in http.get("/t/acme/jobs").text, "another's"
    page.get_by_role("button", name="Forget the view").click()
    expect(page.get_by_role("navigation", name="Your views")).to_have_count(0)


def test_all_that_match_are_canceled_as_an_operation_in_a_second_step(
    visit: Visit, stage: Stage
) -> None:
    async def fill(core: Core) -> None:
        items = [
            {"tenant": "acme", "definition": "files.sync", "correlation_id": "mass"}
            for _ in range(1003)
        ]
        await core.enqueue_many(items)

    stage.do(fill)
    with client(stage, "member") as http:
        assert "cancel…" not in http.get("/t/acme/jobs?correlation=mass").text
        assert http.get("/t/acme/jobs/all?correlation=mass").status_code == 403
    tab = visit("/t/acme/jobs?correlation=mass", "admin", js=False)
    tab.checks = False
    page = tab.page
    page.get_by_role("link", name="cancel…").click()
    expect(page.locator("main")).to_contain_text("1,003 jobs")
    page.get_by_label("Why").fill("too many")
    page.get_by_role("button", name="Cancel 1,003 jobs").click()
    expect(page.locator(".fault")).to_contain_text("type 1003 to go on")
    page.get_by_label("Type 1003").fill("1,003")
    page.get_by_role("button", name="Cancel 1,003 jobs").click()
    expect(page.locator("#toasts")).to_contain_text("1,003 jobs")

    async def left(core: Core) -> int:
        found: int = await core.one(
            "select count(*) from fairlane.job where correlation_id = 'mass'"
        )
        return found

    assert stage.do(left) == 0


def test_no_operation_without_a_filter_that_it_can_keep(stage: Stage) -> None:
    with client(stage, "admin") as http:
        assert "needs a filter" in http.get("/t/acme/jobs/all").text
        assert "narrowed by worker" in http.get("/t/acme/jobs/all?worker=wk-7f3a").text
        answer = http.get("/t/acme/jobs/all?state=succeeded&action=cancel")
        assert "can be canceled" in answer.text
