"""A real Chromium, and pages that fail a test for what they say on the console."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
VIEW: ViewportSize = {"width": 1360, "height": 850}

# Kept on the window of each page; asked for at the end.
LISTEN = """
window.violations = [];
addEventListener('securitypolicyviolation', (e) =>
  window.violations.push(`${e.violatedDirective}: ${e.blockedURI} ${e.sample}`));
"""


def need_chromium() -> None:
    if CHROMIUM.exists():
        return
    said = f"there is no {CHROMIUM}; install it: apt-get install chromium"
    if os.environ.get("FAIRLANE_TEST_ALL") == "1":
        pytest.fail(said)
    pytest.skip(said)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGS)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """One page, and what went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        self.checks = True
        page.add_init_script(LISTEN)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on(
            "console",
            lambda said: (
                self.wrong.append(said.text) if said.type in ("error", "warning") else None
            ),
        )

    def go(self, address: str) -> None:
        """To another page, if this one is without fault."""
        self.check()
        self.page.goto(address)

    def check(self) -> None:
        """No error, no violation of the policy, nothing injected has run."""
        self.wrong += self.page.evaluate("window.violations ?? []")
        assert self.wrong == [], self.wrong
        assert self.page.evaluate("window.hacked") is None


def sign_in(context: BrowserContext, address: str, token: str) -> None:
    """By the form, as the browser would send it."""
    answer = context.request.post(f"{address}/login", form={"token": token}, max_redirects=0)
    assert answer.status == 303, answer.text()
