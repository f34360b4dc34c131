"""One server and one browser for all tests of the pages; a context for each role and theme."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from support.cluster import Cluster
from web.browser import VIEW, Tab, chromium, need_chromium, sign_in
from web.ops_stage import furnish
from web.stage import Stage, dress, serving

Visit = Callable[..., Tab]


@pytest.fixture(scope="package")
def stage(cluster: Cluster, template: str) -> Iterator[Stage]:
    with cluster.fresh(template) as url, serving(url) as address:
        found = Stage(url, address)
        found.do(lambda core: dress(core, found))
        found.do(lambda core: furnish(core, found))
        yield found


@pytest.fixture(scope="package")
def browser(stage: Stage) -> Iterator[Browser]:
    """Its driver keeps a loop running in this thread: the stage is set before, and it goes with
    the package, so that no test of another meets it."""
    need_chromium()
    with chromium() as found:
        yield found


@pytest.fixture(scope="package")
def contexts(browser: Browser) -> Iterator[dict[object, BrowserContext]]:
    found: dict[object, BrowserContext] = {}
    yield found
    for each in found.values():
        each.close()


@pytest.fixture
def visit(
    browser: Browser, contexts: dict[object, BrowserContext], stage: Stage
) -> Iterator[Visit]:
    """Open a page as a role; every tab that was opened must be without fault at the end."""
    tabs: list[Tab] = []

    def open_(path: str, role: str | None = "member", theme: str = "light", js: bool = True) -> Tab:
        key = (role, theme, js)
        if key not in contexts:
            made = browser.new_context(viewport=VIEW, color_scheme=theme, java_script_enabled=js)  # type: ignore[arg-type]
            made.set_default_timeout(10_000)
            if role is not None:
                sign_in(made, stage.address, stage.tokens[role])
            contexts[key] = made
        tab = Tab(contexts[key].new_page())
        tabs.append(tab)
        tab.page.goto(stage.address + path)
        return tab

    yield open_
    for tab in tabs:
        if tab.checks:
            tab.check()
        tab.page.close()
