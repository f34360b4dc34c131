"""What operators do on their pages, with a script and without; figures and forms by themselves."""

import csv
import io
import json
import re
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from fairlane.api.models.queues import QueueChanges
from fairlane.api.models.tenants import PlanChanges, TenantIn
from fairlane.web.fairness import Share, jain
from fairlane.web.pages import PAGES as EVERY
from fairlane.web.sent import read
from web.browser import Tab
from web.conftest import Visit
from web.stage import XSS, Stage
from web.test_pages import AXE, LOOKS, client, path_of

OF_OPERATORS = (
    "/ops",
    "/ops/queues",
    "/ops/queues/default?range=24h",
    "/ops/fairness?w.acme=3&w.globex=no",
    "/ops/workers",
    "/ops/workers/{worker}",
    "/ops/alerts",
    "/ops/alerts/rules/stuck_jobs",
    "/ops/alerts/silence?rule=no_worker&subject=bulk",
    "/ops/tenants",
    "/ops/tenants/umbrella",
    "/ops/plans",
    "/ops/plans/pro?max_running=2&weight=2",
    "/ops/definitions",
    "/ops/definitions/{definition}",
    "/ops/jobs",
    "/ops/audit",
)


@pytest.mark.parametrize("path", OF_OPERATORS)
def test_a_page_is_accessible_and_runs_nothing_that_somebody_wrote(
    visit: Visit, stage: Stage, path: str
) -> None:
    tab = visit(path.format(**stage.names), "operator")
    assert tab.page.locator("h1").count() == 1
    assert tab.page.locator("main img").count() == 0
    for theme, rules in LOOKS:
        tab.page.emulate_media(color_scheme=theme)
        found = AXE.run(tab.page, options=rules)
        assert found.violations_count == 0, f"{theme}: {found.generate_report()}"


def test_every_live_region_is_answered_alone(stage: Stage) -> None:
    """What a page asks for when something changed; the same partials as the page itself."""
    with client(stage, "operator") as http:
        for path in OF_OPERATORS:
            url = path.format(**stage.names)
            names = re.findall(r'id="(\w+)"[^>]* data-live=', http.get(url).text)
            if names:
                answer = http.get(url, headers={"X-Fragment": ",".join(names)})
                assert answer.status_code == 200, (path, answer.text)
                assert all(f'id="{name}"' in answer.text for name in names), path
    with client(stage, "admin") as http:
        for topic in ("ops", "work", "workers", "alerts", "fairness"):
            assert http.get(f"/events?topics={topic}").status_code == 403, topic


def plainly(tab: Tab) -> Page:
    """Without a script, where what the console says cannot be asked."""
    tab.checks = False
    return tab.page


def said(page: Page) -> Any:
    return expect(page.locator("#toasts .toast").last)


def test_a_queue_is_paused_and_resumed_where_it_is_seen(visit: Visit, stage: Stage) -> None:
    page = visit("/ops/queues", "operator").page
    page.get_by_role("button", name="Pause bulk").click()
    page.locator("#confirm").get_by_role("button", name="Pause").click()
    said(page).to_contain_text("Queue bulk is paused")
    row = page.locator("#row-bulk")
    expect(row).to_contain_text("Paused")
    row.get_by_role("button", name="Resume bulk").click()
    expect(row).not_to_contain_text("Paused")


def test_a_queue_is_set_without_a_script_and_a_fault_stands_at_its_field(
    visit: Visit, stage: Stage
) -> None:
    page = plainly(visit("/ops/queues/critical", "operator", js=False))
    page.locator("#settings").evaluate("form => form.noValidate = true")
    page.get_by_label("Slots").fill("0")
    page.get_by_label("Retry after").fill("5, 10")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#h-slots")).to_contain_text("Slots must be 1 or more")
    expect(page.get_by_label("Retry after")).to_have_value("5, 10")
    page.get_by_label("Slots").fill("6")
    page.get_by_role("button", name="Save").click()
    said(page).to_contain_text("slots, retry delays")
    held = stage.do(lambda core: core.fetch("select * from fairlane.queue where name = 'critical'"))
    assert (held[0]["slots"], held[0]["retry_delays"]) == (6, [5, 10])
    audit = "select detail::text from fairlane.audit where action = 'queue.set' order by id desc"
    detail = stage.do(lambda core: core.one(audit))
    assert json.loads(detail) == {"slots": 6, "retry_delays": [5, 10]}, "and nothing else is told"


def test_a_queue_is_added(visit: Visit, stage: Stage) -> None:
    page = plainly(visit("/ops/queues", "operator", js=False))
    page.get_by_text("Add a queue").click()
    page.get_by_label("Name").fill("Not a name")
    page.get_by_role("button", name="Add queue").click()
    expect(page.locator("#h-name")).to_contain_text("Name must be of a-z")
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Add queue").click()
    expect(page.locator("h1")).to_have_text("nightly")
    expect(page.locator("#queue")).to_contain_text("fairlane worker --queue nightly=4")


def test_weights_are_tried_before_they_are_changed(visit: Visit, stage: Stage) -> None:
    def weights() -> Any:
        sql = "select slug, weight from fairlane.tenants where slug in ('acme', 'globex')"
        return {row[0]: row[1] for row in stage.do(lambda core: core.fetch(sql))}

    shown = plainly(visit("/ops/fairness", "operator", js=False))
    shown.get_by_label("Weight of globex").fill("3")
    shown.get_by_role("button", name="Preview weights").click()
    preview = shown.get_by_role("region", name="What if")
    expect(preview).to_contain_text("points")
    assert weights() == {"acme": 1.0, "globex": 1.0}, "nothing is changed by a look"
    preview.get_by_role("button", name="Change 1 weight").click()
    said(shown).to_contain_text("1 tenant weighed anew")
    assert weights() == {"acme": 1.0, "globex": 3.0}
    stage.do(lambda core: core.fetch("select fairlane.set_tenant('globex', '{\"weight\": null}')"))


def test_a_worker_that_went_silent_says_when_its_jobs_are_taken_back(
    visit: Visit, stage: Stage
) -> None:
    page = visit("/ops/workers", "operator").page
    row = page.locator(f"#row-{stage.names['worker']}")
    expect(row).to_contain_text("Silent")
    expect(row).to_contain_text("3 jobs will be reclaimed at")
    first = page.locator("tr[data-row]").first
    expect(first).to_contain_text("Lost")
    row.get_by_role("link", name="wk-91cc").click()
    expect(page.locator("tr[id^=runs-]")).to_have_count(3)


def test_alerts_are_acknowledged_and_silenced(visit: Visit, stage: Stage) -> None:
    page = visit("/ops/alerts", "operator").page
    page.get_by_role("button", name="Acknowledge worker_lost wk-02be").click()
    said(page).to_contain_text("Acknowledged")
    expect(page.get_by_role("region", name="Acknowledged")).to_contain_text("worker_lost")
    page.get_by_role("link", name="Silence queue_backlog default").click()
    page.get_by_label("Why").fill(XSS)
    page.get_by_role("button", name="Silence").click()
    quiet = page.get_by_role("region", name="Silenced")
    expect(quiet).to_contain_text(XSS)
    expect(quiet.locator(".alerts")).to_contain_text("queue_backlog")
    quiet.get_by_role("button", name="End silence").click()
    expect(page.get_by_role("region", name="Firing")).to_contain_text("queue_backlog")
    assert page.locator("img").count() == 0


def test_a_rule_is_changed_and_tested_without_a_script(visit: Visit, stage: Stage) -> None:
    page = plainly(visit("/ops/alerts/rules/dead_letters", "operator", js=False))
    page.get_by_label("Over").fill("70")
    page.get_by_label("Told again after").fill("999999999")
    page.locator("form", has_text="When, and").evaluate("form => form.noValidate = true")
    page.get_by_role("button", name="Save rule").click()
    expect(page.locator("#h-cooldown_seconds")).to_contain_text("must be 604800 or less")
    page.get_by_label("Told again after").fill("1800")
    page.get_by_label("log").check()
    page.get_by_role("button", name="Save rule").click()
    said(page).to_contain_text("threshold, cooldown seconds, channels")
    page.get_by_role("button", name="Send a test").click()
    said(page).to_contain_text("A test of dead_letters went out by log")
    sql = "select threshold, channels from fairlane.alert_rule where name = 'dead_letters'"
    assert tuple(stage.do(lambda core: core.fetch(sql))[0]) == (70.0, ["log"])


def test_a_tenant_is_added_limited_suspended_and_entered(visit: Visit, stage: Stage) -> None:
    page = visit("/ops/tenants", "operator").page
    page.get_by_text("Add a tenant").click()
    page.get_by_label("Slug").fill("hooli")
    page.get_by_label("Name", exact=True).fill(XSS)
    page.get_by_role("button", name="Add tenant").click()
    expect(page.locator("h1")).to_have_text("hooli")
    page.get_by_label("Plan", exact=True).select_option("pro")
    page.get_by_label("Running at once").fill("7")
    page.get_by_role("button", name="Save").click()
    said(page).to_contain_text("plan, max running")
    page.get_by_role("button", name="Suspend tenant").click()
    page.locator("#confirm").get_by_role("button", name="Suspend").click()
    expect(page.locator("#tenant")).to_contain_text("Nothing of this tenant starts")
    page.get_by_role("button", name="Resume tenant").click()
    expect(page.locator("#tenant_head")).not_to_contain_text("Suspended")
    sql = "select plan, overrides::text, paused_at from fairlane.tenants where slug = 'hooli'"
    row = stage.do(lambda core: core.fetch(sql))[0]
    assert (row["plan"], json.loads(row["overrides"]), row[2]) == ("pro", {"max_running": 7}, None)
    page.get_by_role("link", name="Enter as admin").click()
    expect(page.locator(".banner")).to_contain_text("You act in hooli")


def test_a_tenant_that_is_there_is_not_added_again(stage: Stage) -> None:
    with client(stage, "operator") as http:
        form = {"_token": word(http), "slug": "acme", "plan": "pro"}
        answer = http.post("/ops/tenants", data=form)
        assert answer.status_code == 422
        assert "there already" in answer.text
        assert 'value="acme"' in answer.text, "what was typed is kept"


def test_a_plan_is_changed_after_a_look_at_the_difference(visit: Visit, stage: Stage) -> None:
    page = plainly(visit("/ops/plans/starter", "operator", js=False))
    stage.do(lambda core: core.a_tenant("small", plan="starter"))
    page.get_by_label("Running at once").fill("5")
    page.get_by_role("button", name="Preview the change").click()
    change = page.get_by_role("region", name="What would change")
    expect(change.locator("td")).to_have_text(["Running at once", "3", "5", "1 tenant"])
    held = "select max_running from fairlane.plan where name = 'starter'"
    assert stage.do(lambda core: core.one(held)) == 3
    other = "select fairlane.set_plan('starter', '{\"weight\": 1.5}')"
    stage.do(lambda core: core.fetch(other))
    change.get_by_role("button", name="Save for").click()
    expect(page.locator("main")).to_contain_text("changed by somebody else")
    assert stage.do(lambda core: core.one(held)) == 3, "what was previewed no longer holds"
    page.goto(f"{stage.address}/ops/plans/starter?max_running=5")
    page.get_by_role("button", name="Save for").click()
    said(page).to_contain_text("holds at once for 1 tenant")
    assert stage.do(lambda core: core.one(held)) == 5


def test_a_kind_is_paused_and_resumed(visit: Visit, stage: Stage) -> None:
    page = visit(f"/ops/definitions/{stage.names['definition']}", "operator").page
    expect(page.locator("main")).to_contain_text("No worker registers this")
    page.get_by_role("button", name="Pause kind").click()
    page.locator("#confirm").get_by_role("button", name="Pause kind").click()
    page.get_by_role("button", name="Resume kind").click()
    expect(page.get_by_role("button", name="Pause kind")).to_be_visible()
    sql = "select is_active from fairlane.definition where key = 'odd.kind'"
    assert stage.do(lambda core: core.one(sql)) is True


def test_jobs_of_all_tenants_are_found_and_stopped(visit: Visit, stage: Stage) -> None:
    jobs = [
        stage.do(lambda core, t=t: core.enqueue(t, "email.send", correlation_id="over-all"))
        for t in ("acme", "globex")
    ]
    page = plainly(visit("/ops/jobs?correlation=over-all", "operator", js=False))
    expect(page.locator(f"#row-{jobs[1]}")).to_contain_text("globex")
    for job in jobs:
        page.locator(f"#row-{job} input[type=checkbox]").check()
    page.locator(".bar").get_by_role("button", name="Cancel").click()
    said(page).to_contain_text("Canceled 2 jobs.")
    expect(page.locator(f"#row-{jobs[0]}")).to_contain_text("Canceled")
    assert page.url.endswith("correlation=over-all")


def test_the_audit_is_filtered_and_taken_along(stage: Stage) -> None:
    stage.do(lambda core: core.fetch("select fairlane.pause_tenant('empty')"))
    stage.do(lambda core: core.fetch("select fairlane.resume_tenant('empty')"))
    with client(stage, "operator") as http:
        page = http.get("/ops/audit?tenant=empty&action=tenant.pause")
        assert page.text.count("data-row") == 1
        assert http.get("/ops/audit?tenant=nobody").status_code == 404
        assert http.get("/ops/audit?before=x").status_code == 422
        answer = http.get("/ops/audit.csv?tenant=empty&action=tenant.pause")
        assert "attachment" in answer.headers["content-disposition"]
        (row,) = csv.DictReader(io.StringIO(answer.text))
        assert (row["action"], row["tenant"], row["target"]) == ("tenant.pause", "empty", "empty")
        items = http.get("/ops/audit.json?tenant=empty").json()["items"]
        assert [each["action"] for each in items[:2]] == ["tenant.resume", "tenant.pause"]


def word(http: httpx2.Client) -> str:
    """What the session's forms carry."""
    found = re.search(r'name="_token" value="([^"]+)"', http.get("/account").text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("role", ["viewer", "member", "admin"])
def test_nobody_else_does_what_operators_do(stage: Stage, role: str) -> None:
    posts = [page for page in EVERY if page.method == "POST" and page.path.startswith("/ops")]
    assert len(posts) > 15
    with client(stage, role) as http:
        form = {"_token": word(http)}
        for page in posts:
            answer = http.post(path_of(page, stage), data=form)
            assert answer.status_code == 403, page.name
            assert "operator" in answer.text


def test_a_form_without_its_word_changes_nothing(stage: Stage) -> None:
    with client(stage, "operator") as http:
        assert http.post("/ops/queues/default/pause").status_code == 403
        form = {"_token": word(http)}
        for wrong in ("/ops/queues/no-such/pause", "/ops/alerts/no-id/ack", "/ops/plans/none"):
            assert http.post(wrong, data=form).status_code == 404, wrong
        assert http.post("/ops/fairness", data={**form, "w.acme": "-1"}).status_code == 422


# By themselves -----------------------------------------------------------------


def share(**fields: Any) -> Share:
    return Share(
        **{
            "slug": "a",
            "weight": 1.0,
            "is_own_weight": False,
            "queued": 0,
            "running": 0,
            "ready": 0,
            "entitled": 0.5,
            "entitled_then": 0.5,
            "has": 0.5,
            "flight": 0.5,
            "all_running": 10.0,
            "is_paused": False,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("fields", "noisy", "starved"),
    [
        ({}, False, False),
        ({"has": 0.65}, True, False),
        ({"has": 0.59}, False, False),
        ({"running": 30, "flight": 0.65}, True, False),
        ({"running": 29, "flight": 0.65}, False, False),
        ({"ready": 5, "running": 2}, False, True),
        ({"ready": 5, "running": 3}, False, False),
        ({"ready": 0, "queued": 5, "running": 0}, False, False),  # its own limit holds it
        ({"ready": 5, "entitled": 0.09, "has": 0.0}, False, False),  # less than a slot
    ],
)
def test_noisy_and_starved_are_told_by_what_a_tenant_is_entitled_to(
    fields: dict[str, Any], noisy: bool, starved: bool
) -> None:
    found = share(**fields)
    assert (found.is_noisy, found.is_starved) == (noisy, starved)


def test_jains_index_is_one_when_each_has_its_part() -> None:
    assert jain([share(has=0.5), share(has=0.5)]) == pytest.approx(1)
    assert jain([share(has=1.0), share(has=0.0)]) == pytest.approx(0.5)
    assert jain([share()]) is None


def test_a_form_is_read_by_the_model_of_the_call() -> None:
    sent = read(QueueChanges, {"slots": "3", "max_running_per_tenant": "", "retry_delays": "1, 2"})
    assert sent.values == {"slots": 3, "max_running_per_tenant": None, "retry_delays": [1, 2]}
    assert sent.changes({"slots": 3, "max_running_per_tenant": 4, "retry_delays": [1, 2]}) == {
        "max_running_per_tenant": None
    }
    wrong = read(PlanChanges, {"weight": "heavy", "max_running": "-1", "retention_days": ""})
    assert wrong.faults == {
        "weight": "must be a number",
        "max_running": "must be 0 or more",
        "retention_days": "must be a whole number",
    }
    assert "slug" in read(TenantIn, {"slug": "No!"}).faults
