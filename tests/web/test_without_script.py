"""With JavaScript off: read, filter, page, cancel, run again. And mounted somewhere else."""

from fastapi import FastAPI
from playwright.sync_api import expect

from fairlane.config import Settings
from fairlane.web.app import User, ui
from web.conftest import Visit
from web.stage import Stage, serving
from web.test_pages import client


def test_jobs_are_filtered_paged_canceled_and_run_again_by_forms(
    visit: Visit, stage: Stage
) -> None:
    job = stage.do(lambda core: core.enqueue("acme", "email.send", correlation_id="by-forms"))
    tab = visit("/t/acme/jobs", "member", js=False)
    tab.checks = False  # that asks by a script
    page = tab.page
    page.locator("#filter").fill("correlation:by-forms")
    page.get_by_role("button", name="Filter").click()
    page.locator(f"#row-{job}").get_by_role("button", name="Cancel").click()
    expect(page.locator("#toasts")).to_contain_text("canceled")
    expect(page.locator(f"#row-{job}")).to_contain_text("Canceled")
    page.locator(f"#row-{job}").get_by_role("button", name="Run again").click()
    expect(page.locator("dd a.mono", has_text=str(job)[:8])).to_be_visible()
    page.goto(f"{stage.address}/t/acme/jobs")
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_role("link", name="Newest")).to_be_visible()


def test_mounted_in_an_application_links_and_rules_hold(stage: Stage) -> None:
    """Nobody runs the lifespan of what is mounted; the host says who somebody is."""
    host = FastAPI()
    pages = ui(
        stage.url,
        settings=Settings(),
        auth=lambda request: (
            User("ada", "viewer", "acme") if request.headers.get("x-ada") else None
        ),
    )
    host.mount("/ops/jobs", pages)
    with serving(stage.url, app=host) as address, client(Stage(stage.url, address), None) as http:
        page = http.get("/ops/jobs/t/acme", headers={"x-ada": "1"})
        assert page.status_code == 200
        assert 'href="/ops/jobs/t/acme/jobs"' in page.text
        assert 'src="/ops/jobs/static/' in page.text
        assert http.get("/ops/jobs/t/globex", headers={"x-ada": "1"}).status_code == 404
        assert http.get("/ops/jobs/t/acme").status_code == 403
