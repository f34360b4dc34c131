"""Triggers and events on their pages: written, tried, run, paused; sent again."""

import re
from uuid import UUID

from playwright.sync_api import expect

from support.core import Core
from web.conftest import Visit
from web.stage import Stage
from web.test_pages import client
from web.work import XSS


def test_a_schedule_is_written_with_a_live_preview_saved_paused_run_and_deleted(
    visit: Visit, stage: Stage
) -> None:
    tab = visit("/t/acme/triggers", "admin")
    page = tab.page
    page.get_by_role("link", name="New schedule").first.click()
    page.get_by_label("Cron expression").fill("15 6 * * MON")
    expect(page.locator("#trigger_times")).to_contain_text("at 06:15, on Monday")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    expect(page.locator("#trigger_times")).to_contain_text("In Asia/Tokyo")
    expect(page.locator("#trigger_times tbody tr")).to_have_count(5)
    page.get_by_label("Name").fill(f"Weekly {XSS}")
    page.get_by_label("Job", exact=False).first.fill("files.sync")
    page.get_by_label("Payload template").fill('{"at": "{{schedule.time}}"}')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text(f"Weekly {XSS}")
    expect(page.locator("#trigger_side")).to_contain_text("At 06:15, on Monday")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#trigger_head")).to_contain_text("Paused")
    here = page.url
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_have_text("files.sync")
    page.locator("dt", has_text="Trigger").locator("+ dd a").click()
    expect(page).to_have_url(here)
    expect(page.locator("#trigger_runs")).to_contain_text("by hand")
    page.get_by_role("button", name="Delete").click()
    page.locator("#confirm [value=yes]").click()
    expect(page).to_have_url(re.compile("/triggers\\?type=schedule$"))
    expect(page.locator("#triggers")).not_to_contain_text("Weekly")
    # The page of what was deleted may have asked for itself once more before it was left.
    assert all("404" in said for said in tab.wrong)
    tab.wrong.clear()


def test_bad_input_of_a_trigger_stands_at_its_field_and_what_was_typed_is_kept(
    visit: Visit,
) -> None:
    tab = visit("/t/acme/triggers/new", "admin", js=False)
    tab.checks = False
    page = tab.page
    page.get_by_label("Cron expression").fill("61 * * * *")
    page.get_by_label("Payload template").fill("{not json")
    page.get_by_label("Jitter").fill("soon")
    page.get_by_role("button", name="Save").click()
    wrong = page.locator(".field.wrong")
    expect(wrong).to_have_count(1)
    expect(wrong).to_contain_text("this is not JSON")
    page.get_by_label("Payload template").fill("{}")
    page.get_by_role("button", name="Save").click()
    said = page.locator(".field.wrong").all_inner_texts()
    assert [each.split("\n")[0].replace(" required", "") for each in said] == [
        "Name",
        "Job",
        "Jitter",
    ]
    page.get_by_label("Name").fill("x")
    page.get_by_label("Job", exact=False).first.fill("no.such")
    page.get_by_label("Jitter").fill("0")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".field.wrong")).to_contain_text("is no cron expression")
    expect(page.locator("#trigger_times")).to_contain_text("is no cron expression")
    page.get_by_label("Cron expression").fill("@hourly")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".field.wrong")).to_contain_text('there is no definition "no.such"')
    expect(page.locator("#trigger_times")).to_contain_text("every hour")
    expect(page.get_by_label("Name")).to_have_value("x")


def test_an_event_trigger_is_made_of_a_sample_tested_and_run(visit: Visit, stage: Stage) -> None:
    tab = visit("/t/acme/events/evt%2F10", "admin", js=False)
    tab.checks = False
    page = tab.page
    page.get_by_role("link", name="New trigger from it").click()
    expect(page.get_by_label("Event", exact=False).first).to_have_value("provider.folder.updated")
    page.get_by_label("Name").fill("Large folders")
    page.get_by_label("Job", exact=False).first.fill("files.sync")
    page.get_by_label("Filter").fill('{"size": {"gte": 20}}')
    page.get_by_label("Payload template").fill('{"who": "{{event.owner}}"}')
    page.get_by_role("button", name="Test").click()
    tested = page.locator("table").last
    expect(tested).to_contain_text("size is 15, which does not fit gte 20")
    expect(tested).to_contain_text('the name is not "provider.folder.updated"')
    expect(tested).to_contain_text('{"who":"ada"}')
    expect(tested.get_by_text("No job")).not_to_have_count(0)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text("Large folders")
    page.get_by_label("Data of an event").fill("{}")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator(".fault")).to_contain_text("{{event.owner}}")
    page.get_by_label("Data of an event").fill('{"owner": "bob"}')
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_have_text("files.sync")
    expect(page.locator("pre").first).to_contain_text("bob")


def test_two_who_edit_one_trigger_are_told_of_each_other(stage: Stage, visit: Visit) -> None:
    page = visit(f"/t/acme/triggers/{stage.names['schedule']}/edit", "admin", js=False)
    page.checks = False

    async def other(core: Core) -> None:
        await core.fetch(
            "update fairlane.trigger set cron_expr = '0 1 * * *', revision = revision + 1"
            " where id = $1",
            UUID(stage.names["schedule"]),
        )

    stage.do(other)
    page.page.get_by_label("Jitter").fill("30")
    page.page.get_by_role("button", name="Save").click()
    expect(page.page.locator(".alert")).to_contain_text("cron_expr is now “0 1 * * *”")
    page.page.get_by_role("button", name="Save").click()
    expect(page.page.locator("#trigger_side")).to_contain_text("30 8 * * 1-5")


def test_a_trigger_is_copied_and_switched_from_the_list(visit: Visit, stage: Stage) -> None:
    page = visit("/t/acme/triggers?type=event", "admin").page
    row = page.locator("tr", has_text="Needs an owner")
    expect(row.locator("svg.strip rect")).not_to_have_count(0)
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("Paused")
    row.get_by_role("button", name="Resume").click()
    expect(row).to_contain_text("On")
    row.get_by_label("More").click()
    row.get_by_role("link", name="Duplicate").click()
    expect(page.get_by_label("Name")).to_have_value("Needs an owner (copy)")


def test_events_show_what_came_of_them_and_are_sent_again(visit: Visit, stage: Stage) -> None:
    page = visit("/t/acme/events", "member").page
    row = page.locator("tr", has_text="evt/10")
    expect(row).to_contain_text("No job")
    expect(row.get_by_role("link", name="Job of Resync a folder")).to_be_visible()
    row.get_by_role("button", name="Resend").click()
    expect(page.locator("h1")).to_have_text("provider.folder.updated")
    expect(page.locator("#event")).to_contain_text("It waits for the scheduler")
    page.locator("dt", has_text="Repeats").locator("+ dd a").click()
    expect(page.locator("#event")).to_contain_text("Sent again")
    expect(page.locator("#event")).to_contain_text("{{event.owner}}")
    expect(page.get_by_role("link", name="Use as a sample")).to_have_count(0)


def test_without_any_the_pages_say_how_to_begin(stage: Stage) -> None:
    with client(stage, "operator") as http:
        empty = http.get("/t/empty/events").text
        assert "curl -X POST" in empty
        assert "/api/v1/events" in empty
        both = http.get("/t/empty/triggers").text
        assert "30 8 * * 1-5" in both
        assert "provider.folder.*" in both


def test_what_a_role_may_not_do_is_not_shown_and_refused(stage: Stage) -> None:
    trigger = stage.names["schedule"]
    with client(stage, "member") as http:
        for path in ("/t/acme/triggers", f"/t/acme/triggers/{trigger}"):
            text = http.get(path).text
            assert "Run now" not in text
            assert "New schedule" not in text
        word = re.search(r'name="([^"]+)" value="([^"]+)"', http.get("/t/acme/events").text)
        assert word is not None
        data = {word[1]: word[2]}
        for verb in ("fire", "switch", "delete"):
            answer = http.post(f"/t/acme/triggers/{trigger}/{verb}", data=data)
            assert answer.status_code == 403, verb
    with client(stage, "viewer") as http:
        assert "Resend" not in http.get("/t/acme/events").text
        assert http.get("/t/acme/jobs/new").status_code == 403


def test_an_event_that_comes_shows_by_itself(visit: Visit, stage: Stage) -> None:
    page = visit("/t/acme/events?name=just.now", "viewer").page
    expect(page.locator("#events")).to_contain_text("No event fits")

    async def emit(core: Core) -> None:
        await core.fetch("select * from fairlane.emit($1, $2, '{}'::jsonb)", "acme", "just.now")

    page.wait_for_selector("#live[data-state=on]")
    stage.do(emit)
    expect(page.locator("#events tbody tr")).to_have_count(1)
