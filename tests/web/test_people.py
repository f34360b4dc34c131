"""Dead letters, bulk operations, usage, people, keys, audit: what a tenant's people do there."""

import csv
import io
import json
import re
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from fairlane.core import calls
from support.core import Core
from web.conftest import Visit
from web.stage import XSS, Stage
from web.test_pages import client
from web.test_signing_in import token_of


def dead(stage: Stage, *messages: str, kind: str = "invoices.pull", **asked: Any) -> list[UUID]:
    """Dead letters of their own for a test, newest last."""

    async def made(core: Core) -> list[UUID]:
        worker = await core.a_worker(3600)
        found = []
        for message in messages:
            payload = {"account": 7, "api_key": "the-stored-secret"}
            job = await core.enqueue("acme", kind, payload=payload, **asked)
            leases = await core.claim(worker, 50, "critical")
            lease = next(each for each in leases if each.job_id == job)
            if others := [each for each in leases if each is not lease]:
                await core.finish(*others)  # that a test before has replayed
            await core.fail(lease, error={"type": "HttpError", "message": message})
            found.append(job)
        return found

    found: list[UUID] = stage.do(made)
    return found


def letter(stage: Stage, job: UUID) -> Any:
    sql = "select * from fairlane.dead_letter where id = $1"
    return stage.do(lambda core: core.fetch(sql, job))[0]


def settled(page: Page) -> None:
    expect(page.locator("#toasts")).to_contain_text(re.compile("Replayed|Resolved|Ignored"))


# Dead letters ------------------------------------------------------------------------


def test_letters_of_one_cause_are_one_group_and_replayed_together(
    visit: Visit, stage: Stage
) -> None:
    jobs = dead(stage, *(f"shard {number} of “{number}@x.example” timed out" for number in (3, 14)))
    other = dead(stage, "shard is gone")
    page = visit("/t/acme/dlq", "admin").page
    row = page.locator("tr", has_text="timed out")
    assert row.count() == 1
    expect(row.locator(".num")).to_have_text("2")
    row.get_by_role("button", name="Replay 2 dead letters").click()
    expect(page.locator("#confirm")).to_contain_text("Puts 2 jobs of invoices.pull back in line")
    page.locator("#confirm [value=yes]").click()
    expect(page.locator("#toasts")).to_contain_text("Replayed 2 dead letters")
    expect(row).to_have_count(0)
    assert [letter(stage, job)["status"] for job in jobs] == ["retried", "retried"]
    assert letter(stage, other[0])["status"] == "pending"


def test_a_group_is_ignored_with_a_note_and_not_without_one_by_forms_alone(
    visit: Visit, stage: Stage
) -> None:
    jobs = dead(stage, "quota 17 used up", "quota 18 used up", correlation_id="of-one-group")
    tab = visit("/t/acme/dlq", "admin", js=False)
    tab.checks = False
    page = tab.page
    page.locator("tr", has_text="used up").get_by_role("link", name="Open").click()
    page.get_by_role("button", name="Ignore all").click()
    expect(page.locator(".problem")).to_contain_text("a note that says why")
    assert letter(stage, jobs[0])["status"] == "pending"
    page.go_back()
    page.locator("#group-note").fill(XSS)
    page.get_by_role("button", name="Ignore all").click()
    expect(page.locator("#toasts")).to_contain_text("Ignored 2 dead letters")
    for job in jobs:
        assert letter(stage, job)["status"] == "ignored"
        assert letter(stage, job)["notes"] == XSS


def test_those_that_are_selected_are_resolved(visit: Visit, stage: Stage) -> None:
    first, second = dead(stage, "one of two", "two of two")
    page = visit("/t/acme/dlq?view=list", "admin").page
    page.locator(f"#row-{first} input").check()
    page.locator("input[name=note]").fill("looked at it")
    page.locator(".bar").get_by_role("button", name="Resolve").click()
    settled(page)
    assert letter(stage, first)["status"] == "resolved"
    assert letter(stage, first)["notes"] == "looked at it"
    assert letter(stage, second)["status"] == "pending"


def test_a_bulk_action_that_is_refused_for_some_says_which_and_why(
    visit: Visit, stage: Stage
) -> None:
    (job,) = dead(stage, "only one may live", dedupe_key="taken")
    stage.do(lambda core: core.enqueue("acme", "email.send", dedupe_key="taken"))
    page = visit("/t/acme/dlq?view=list", "admin").page
    page.locator(f"#row-{job} input").check()
    page.locator(".bar").get_by_role("button", name="Replay").click()
    expect(page.locator("h1")).to_have_text("Replay 1 dead letter")
    expect(page.locator("table")).to_contain_text("another live job has its dedupe key")
    assert letter(stage, job)["status"] == "pending"


def test_an_edited_payload_is_told_its_faults_and_then_runs_with_its_secrets(
    visit: Visit, stage: Stage
) -> None:
    (job,) = dead(stage, "wrong account")
    tab = visit(f"/t/acme/dlq/{job}", "admin", js=False)
    tab.checks = False
    page = tab.page
    page.locator("summary", has_text="edited payload").click()
    box = page.locator("#payload")
    assert "the-stored-secret" not in page.content()
    for text, said in (
        ('{"account": }', "is no JSON: line 1"),
        ("[]", "must be an object"),
        ('{"account": 0, "api_key": "[redacted]"}', "/account"),
    ):
        box.fill(text)
        page.get_by_role("button", name="Replay edited").click()
        expect(page.locator("#payload-faults")).to_contain_text(said)
        assert box.input_value() == text, "what was written is still there"
    assert letter(stage, job)["status"] == "pending"
    box.fill('{"account": 8, "api_key": "[redacted]"}')
    page.get_by_role("button", name="Replay edited").click()
    expect(page.locator("#toasts")).to_contain_text("Replayed with the edited payload")
    sql = "select payload::text from fairlane.job where id = $1"
    kept = json.loads(stage.do(lambda core: core.one(sql, job)))
    assert kept == {"account": 8, "api_key": "the-stored-secret"}
    expect(page.locator("#letter")).to_contain_text("Queued")


def test_notes_are_a_thread_and_to_ignore_needs_one(visit: Visit, stage: Stage) -> None:
    (job,) = dead(stage, "to be talked about")
    tab = visit(f"/t/acme/dlq/{job}", "admin")
    page = tab.page
    page.get_by_role("button", name="Ignore").click()
    expect(page.locator("#note-faults")).to_contain_text("say why it does not matter")
    assert "status of 422" in tab.wrong.pop(), "the browser says so on its console"
    for text in ("asked the CRM people", XSS):
        page.locator("#note").fill(text)
        page.get_by_role("button", name="Add note").click()
        expect(page.locator(".thread")).to_contain_text(text)
    page.locator("#note").fill("a test account")
    page.get_by_role("button", name="Ignore").click()
    expect(page.locator("#letter_head")).to_contain_text("Ignored")
    said = page.locator(".thread .said").all_text_contents()
    assert said == ["asked the CRM people", XSS, "a test account"]
    assert page.get_by_role("button", name="Replay").count() == 0
    assert page.get_by_role("button", name="Add note").count() == 1


def test_a_letter_that_another_settles_changes_before_my_eyes(visit: Visit, stage: Stage) -> None:
    (job,) = dead(stage, "seen by two")
    page = visit(f"/t/acme/dlq/{job}", "viewer").page
    expect(page.locator("#live")).to_have_attribute("data-state", "on")
    assert page.get_by_role("button", name="Resolve").count() == 0
    stage.do(lambda core: core.send(calls.resolve(job, "done by another", "acme")))
    expect(page.locator("#letter_head")).to_contain_text("Resolved")
    expect(page.locator(".thread")).to_contain_text("done by another")


def test_nothing_here_says_when_the_last_one_was_settled(stage: Stage) -> None:
    with client(stage, "rival") as http:
        assert "None has been settled yet" in http.get("/t/globex/dlq").text
    (job,) = dead(stage, "the last one")
    stage.do(lambda core: core.send(calls.resolve(job, None, "acme")))
    with client(stage, "viewer") as http:
        page = http.get("/t/acme/dlq?kind=nothing.of.that").text
        assert "Nothing here" in page
        assert "The last one was resolved" in page


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_who_may_not_settle_has_no_buttons_and_is_refused(stage: Stage, role: str) -> None:
    job = stage.jobs["dead"]
    with client(stage, role) as http:
        for path in ("/t/acme/dlq", "/t/acme/dlq?view=list", f"/t/acme/dlq/{job}"):
            page = http.get(path).text
            assert not re.search(r"<button[^>]*>(Replay|Resolve|Ignore|Add note)", page), path
        word = token_of(page)
        for path, data in (
            ("/t/acme/dlq", {"action": "resolve", "job": str(job)}),
            (f"/t/acme/dlq/{job}", {"action": "note", "note": "x"}),
            (f"/t/acme/dlq/{job}/replay", {"payload": "{}"}),
            (f"/t/acme/bulk/{stage.jobs['operation']}/stop", {}),
        ):
            assert http.post(path, data={"_token": word, **data}).status_code == 403, path
    assert letter(stage, job)["status"] == "pending"


# Bulk ------------------------------------------------------------------------------


def test_an_operation_is_followed_stopped_and_gone_on_with(visit: Visit, stage: Stage) -> None:
    dead(stage, *["in a long line"] * 3)
    fingerprint = "select fingerprint from fairlane.dead_letter where last_error ->> 'message' = $1"
    cause = stage.do(lambda core: core.one(fingerprint, "in a long line"))
    asked = {"definition_key": "invoices.pull", "fingerprint": cause}
    begun = calls.create_operation("acme", "resolve", asked, "slowly", 1.0)
    operation = stage.do(lambda core: core.send(begun))[0]["id"]
    page = visit(f"/t/acme/bulk/{operation}", "admin").page
    expect(page.locator("h1")).to_have_text("Resolve 3 dead letters")
    expect(page.locator("dd").first).to_contain_text("of the kind invoices.pull, of one cause")
    expect(page.locator("#live")).to_have_attribute("data-state", "on")
    stage.do(lambda core: core.send(calls.step_operation(operation, 1, "acme")))
    expect(page.locator(".run h2")).to_contain_text("1 of 3 dead letters")
    page.get_by_role("button", name="Stop").click()
    page.locator("#confirm [value=yes]").click()
    expect(page.locator("#operation .head")).to_contain_text("Stopped")
    page.get_by_role("link", name="See what remains").click()
    expect(page.locator("tr[data-row]")).to_have_count(2)
    page.go_back()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#operation .head")).to_contain_text("Running")
    page.goto(f"{stage.address}/t/acme/bulk")
    expect(page.locator(f"#row-{operation}")).to_contain_text("of one cause")


# Keys, people, audit, usage --------------------------------------------------------------


def test_a_key_is_shown_once_opens_what_its_role_may_and_ends_when_it_is_revoked(
    visit: Visit, stage: Stage
) -> None:
    page = visit("/t/acme/keys", "admin").page
    page.locator("#name").fill(XSS)
    page.get_by_role("radio", name="Member").check()
    page.get_by_label("Lasts").select_option("7")
    page.get_by_role("button", name="Make key").click()
    token = page.locator(".key code").text_content() or ""
    assert token.startswith("fl_")
    expect(page.locator(".once")).to_contain_text("member, until")
    page.goto(f"{stage.address}/t/acme/keys")
    assert token not in page.content()
    stage.tokens["made"] = token
    with client(stage, "made") as http:
        assert http.get("/t/acme/jobs").status_code == 200
        row = page.locator("tr", has_text=XSS)
        row.get_by_role("button", name="Revoke").click()
        page.locator("#confirm [value=yes]").click()
        expect(page.locator("#toasts")).to_contain_text("is revoked")
        assert http.get("/t/acme/jobs").status_code == 303
    page.reload()
    expect(row).to_contain_text("Revoked")


def test_a_key_is_made_and_revoked_by_forms_alone(visit: Visit, stage: Stage) -> None:
    tab = visit("/t/acme/keys", "admin", js=False)
    tab.checks = False
    page = tab.page
    page.locator("#name").fill("x" * 250)
    page.get_by_role("button", name="Make key").click()
    expect(page.locator("#name-faults")).to_contain_text("at most 200 characters")
    page.locator("#name").fill("by forms")
    page.get_by_role("button", name="Make key").click()
    expect(page.locator(".key code")).to_contain_text("fl_")
    page.locator("tr", has_text="by forms").get_by_role("button", name="Revoke").click()
    expect(page.locator("tr", has_text="by forms")).to_contain_text("Revoked")


@pytest.mark.parametrize("role", ["operator", "worker", "nobody"])
def test_an_admin_makes_no_key_above_its_tenant(stage: Stage, role: str) -> None:
    with client(stage, "admin") as http:
        word = token_of(http.get("/t/acme/keys").text)
        data = {"_token": word, "role": role, "days": "7", "name": "up"}
        assert http.post("/t/acme/keys", data=data).status_code == 422


def test_another_tenants_key_is_not_there(stage: Stage) -> None:
    sql = "select id from fairlane.token where tenant_id is null limit 1"
    theirs = stage.do(lambda core: core.one(sql))
    with client(stage, "admin") as http:
        word = token_of(http.get("/t/acme/keys").text)
        answer = http.post(f"/t/acme/keys/{theirs}/revoke", data={"_token": word})
        assert answer.status_code == 404


def test_people_are_those_who_signed_in_and_nobody_is_invited(stage: Stage) -> None:
    with client(stage, "viewer"), client(stage, "rival"), client(stage, "admin") as http:
        page = http.get("/t/acme/people").text
    assert "the key a viewer" in page
    assert "no invitations" in page
    rival = stage.tokens["rival"].split("_")[1][:8]
    assert f"token:{rival}" not in page


def test_the_audit_is_filtered_and_exported_as_text_that_no_spreadsheet_runs(
    visit: Visit, stage: Stage
) -> None:
    (job,) = dead(stage, "for the audit")
    note = '=HYPERLINK("https://evil.example")'
    stage.do(lambda core: core.send(calls.note_dead_letter(job, note, "acme")))
    page = visit("/t/acme/audit", "admin").page
    page.get_by_role("link", name="Dead letters").last.click()
    actions = page.locator("tr[data-row] td:nth-child(3)").all_text_contents()
    assert actions
    assert all(each.startswith("dead_letter.") for each in actions)
    page.goto(f"{stage.address}/t/acme/audit?target={job}&since=soon")
    expect(page.locator(".error")).to_contain_text("no span of time")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    with client(stage, "admin") as http:
        answer = http.get(f"/t/acme/audit.csv?target={job}")
        assert "attachment" in answer.headers["content-disposition"]
        head, row = csv.reader(io.StringIO(answer.text))
        assert head == ["at", "actor", "action", "tenant", "target", "detail"]
        assert json.loads(row[5]) == {"notes": note}
        assert "globex" not in http.get("/t/acme/audit.csv").text
    with client(stage, "member") as http:
        assert http.get("/t/acme/audit.csv").status_code == 403


def test_usage_shows_each_limit_and_each_day_and_is_exported(stage: Stage) -> None:
    with client(stage, "viewer") as http:
        page = http.get("/t/acme/usage?days=7").text
        assert page.count("<meter") == 3
        rows = list(csv.DictReader(io.StringIO(http.get("/t/acme/usage.csv?days=7").text)))
        assert len(rows) >= 6
        assert {row["tenant"] for row in rows} == {"acme"}
        assert f"{int(rows[0]['runs']):,}" in page
        assert "Nothing used yet" not in page
