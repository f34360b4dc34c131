"""Every page for every role, in both themes: it answers, it is accessible, nothing is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

from fairlane.access.roles import Role
from fairlane.web.pages import PAGES, Page
from web.conftest import Visit
from web.stage import ROLES, Stage

GETS = [page for page in PAGES if page.method == "GET" and page.needs and page.name != "events"]
LOOKED_AT = ("/t/acme", "/account", "/t/acme/jobs?state=nonsense&since=soon")
AXE = Axe()


def path_of(page: Page, stage: Stage, tenant: str = "acme") -> str:
    return page.path.replace("{tenant}", tenant).replace("{job}", str(stage.jobs["running"]))


@contextmanager
def client(stage: Stage, role: str | None) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=stage.address) as http:
        if role is not None:
            assert http.post("/login", data={"token": stage.tokens[role]}).status_code == 303
        yield http


@pytest.mark.parametrize("role", ROLES)
def test_every_page_answers_whom_its_rule_lets_in_and_nobody_else(stage: Stage, role: str) -> None:
    with client(stage, role) as http:
        for page in GETS:
            answer = http.get(path_of(page, stage))
            assert page.needs is not None
            may = Role(role).may(page.needs)
            assert answer.status_code in ((200, 303) if may else (403,)), page.name
            if not may:
                assert str(page.needs) in answer.text, "it says which role is needed"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("role", ["viewer", "rival"])
def test_another_tenants_pages_are_not_there(stage: Stage, role: str) -> None:
    tenant = "globex" if role == "viewer" else "acme"
    with client(stage, role) as http:
        for page in GETS:
            if page.of_tenant and page.lets_in_role(Role.VIEWER):
                answer = http.get(path_of(page, stage, tenant))
                assert answer.status_code == 404, page.name
                assert "not yours" in answer.text


def test_nobody_sees_a_page_before_signing_in(stage: Stage) -> None:
    with client(stage, None) as http:
        for page in GETS:
            answer = http.get(path_of(page, stage))
            assert answer.status_code == 303, page.name
            assert answer.headers["location"].startswith("/login?next=")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("role", ["viewer", "member", "admin"])
def test_pages_open_without_fault(visit: Visit, stage: Stage, role: str, theme: str) -> None:
    for path in ("/t/acme", "/t/acme/jobs", f"/t/acme/jobs/{stage.jobs['running']}"):
        assert visit(path, role, theme).page.locator("h1").count() == 1


def test_an_overview_ends_where_its_content_ends(visit: Visit) -> None:
    """What is there for screen readers alone, as the tables of charts, takes no room."""
    for path in ("/t/acme", "/ops"):
        tab = visit(path, "operator", "light")
        page_ends, content_ends = tab.page.evaluate(
            """() => [document.documentElement.scrollHeight, Math.max(innerHeight,
                 ...[...document.querySelectorAll("main > *")].map(
                   each => each.getBoundingClientRect().bottom + scrollY))]"""
        )
        assert page_ends <= content_ends + 100, path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible(visit: Visit, stage: Stage, theme: str) -> None:
    """As an operator, who sees all that others see; axe takes its time."""
    job = f"/t/acme/jobs/{stage.jobs['running']}"
    for path in (*LOOKED_AT, job, "/ops"):
        tab = visit(path, "operator", theme)
        found = AXE.run(tab.page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_signing_in_is_accessible(visit: Visit, theme: str) -> None:
    tab = visit("/login", None, theme)
    assert AXE.run(tab.page).violations_count == 0


@pytest.mark.parametrize("tab", ["logs", "payload", "result", "attempts", "events"])
def test_what_a_tenant_wrote_is_shown_and_never_run(visit: Visit, stage: Stage, tab: str) -> None:
    for job in ("xss", "running"):
        shown = visit(f"/t/acme/jobs/{stage.jobs[job]}?tab={tab}", "admin")
        shown.page.wait_for_load_state("load")
        assert shown.page.locator("img").count() == 0
    visit(f"/t/acme/jobs?q={'%3Cscript%3Ewindow.hacked=1%3C/script%3E'}", "admin")
