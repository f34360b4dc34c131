"""Every page for every role, in both themes: it answers, it is accessible, nothing is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from starlette.routing import compile_path

from fairlane.access.roles import Role
from fairlane.web.pages import PAGES, Page
from web.conftest import Visit
from web.stage import ROLES, Stage

GETS = [page for page in PAGES if page.method == "GET" and page.needs and page.name != "events"]
# Where every role is sent that may go there, in both themes; a name in braces is
# one of stage.jobs or stage.names.
LOOKED_AT = (
    "/t/acme",
    "/account",
    "/t/acme/jobs?state=nonsense&since=soon",
    "/t/acme/jobs/{running}",
    "/t/acme/dlq",
    "/t/acme/dlq?view=list",
    "/t/acme/dlq?kind=email.send&view=list",
    "/t/acme/dlq?status=ignored&kind=none",
    "/t/acme/dlq/{dead_xss}",
    "/t/acme/bulk",
    "/t/acme/bulk/{operation}",
    "/t/acme/usage",
    "/t/acme/people",
    "/t/acme/keys",
    "/t/acme/audit?since=soon",
    "/t/acme/jobs/new?kind=reports.build",
    "/t/acme/jobs/{items}",
    "/t/acme/triggers",
    "/t/acme/triggers/{on_event}?test=1",
    "/t/acme/triggers/new",
    "/t/acme/events",
    "/t/acme/events/{event}",
    "/t/empty",
)
# What the paths of single things name, where the stage has no better one.
HOLES = {
    "token": "none",
    "queue": "default",
    "rule": "queue_backlog",
    "slug": "globex",
    "plan": "pro",
    "alert": "00000000-0000-0000-0000-000000000000",
    "silence": "00000000-0000-0000-0000-000000000000",
}
AXE = Axe()
WHOLE = {"resultTypes": ["violations"]}
COLOURS = {**WHOLE, "runOnly": ["color-contrast"]}
LOOKS: tuple[tuple[Literal["light", "dark"], dict[str, Any]], ...] = (
    ("light", WHOLE),
    ("dark", COLOURS),
)


def path_of(page: Page, stage: Stage, tenant: str = "acme") -> str:
    parts = {"tenant": tenant, "job": stage.jobs["running"], "dead": stage.jobs["dead"]}
    parts["operation"] = stage.jobs["operation"]
    parts["trigger"] = stage.names["schedule"]
    path = page.path.replace(":path", "")
    return path.format_map({**HOLES, **parts, **stage.names})


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


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_pages_are_without_fault_and_accessible(visit: Visit, stage: Stage, role: str) -> None:
    """One tab, from page to page; a console error or a breach of the policy fails it. The operator
    sees all that others see, and axe looks at that, in both themes: the dark one changes colours
    alone."""
    paths = [path.format(**stage.jobs, **stage.names) for path in LOOKED_AT if may_open(role, path)]
    tab = visit(paths[0], role)
    for path in paths:
        tab.go(stage.address + path)
        assert tab.page.locator("h1").count() == 1, path
        assert tab.page.locator("main img").count() == 0, path
        for theme, rules in LOOKS if role == "operator" else ():
            tab.page.emulate_media(color_scheme=theme)
            found = AXE.run(tab.page, options=rules)
            assert found.violations_count == 0, f"{path}, {theme}: {found.generate_report()}"


def may_open(role: str, path: str) -> bool:
    if not path.startswith(("/t/acme", "/account")) and role != "operator":
        return False  # another tenant's
    bare = path.partition("?")[0].replace("{", "").replace("}", "")
    for page in PAGES:
        if page.method == "GET" and compile_path(page.path)[0].match(bare):
            return page.lets_in_role(Role(role))
    raise LookupError(path)


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
