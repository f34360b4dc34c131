"""Signing in by a provider: the whole way through a real one, and every way to abuse it."""

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser

from access.provider import AUDIENCE, Provider, a_provider
from web.stage import Stage, serving

BACK = "/login/oidc/back"


@contextmanager
def providing() -> Iterator[Provider]:
    """The provider, in a thread of its own: the browser's driver has a loop in this one."""
    up, down = threading.Event(), asyncio.Event()
    held: dict[str, Any] = {}

    async def run() -> None:
        async with a_provider() as provider:
            provider.new_key("one", "ES256")
            held.update(provider=provider, loop=asyncio.get_running_loop())
            up.set()
            await down.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert up.wait(10)
    try:
        yield held["provider"]
    finally:
        held["loop"].call_soon_threadsafe(down.set)
        thread.join(10)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as found:
        found.secret = "of the client"
        yield found


@pytest.fixture(scope="module")
def address(stage: Stage, provider: Provider) -> Iterator[str]:
    options = {"oidc_issuer": provider.issuer, "oidc_audience": AUDIENCE}
    with serving(stage.url, **options, oidc_client_secret="of the client") as found:
        yield found


@pytest.fixture(autouse=True)
def _as_usual(provider: Provider) -> Iterator[None]:
    yield
    provider.person, provider.secret = {}, "of the client"
    provider.discovery, provider.away = {}, False


@pytest.fixture
def http(address: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=address) as found:
        yield found


def asked(http: httpx2.Client, **query: str) -> str:
    """Begin; what the provider is asked."""
    answer = http.get("/login/oidc", params=query)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def answered(http: httpx2.Client, **query: str) -> str:
    """Begin, and let the provider answer: the address that the browser is sent back to."""
    return httpx2.get(asked(http, **query)).headers["location"]


def is_refused(http: httpx2.Client, to: str, said: str) -> None:
    answer = http.get(to)
    assert answer.status_code == 401, answer.text
    assert said in answer.text
    assert "fairlane_session" not in http.cookies
    assert http.get("/t/acme").headers["location"].startswith("/login")


def test_whoever_the_provider_knows_is_signed_in_with_the_role_it_says(
    http: httpx2.Client, provider: Provider
) -> None:
    provider.person = {"sub": "ada@acme", "role": "admin"}
    to = asked(http, next="/t/acme/jobs?state=failed")
    query = {name: value[0] for name, value in parse_qs(urlsplit(to).query).items()}
    assert query["client_id"] == AUDIENCE
    assert len(query["state"]) >= 43
    assert len({query["state"], query["nonce"], query["code_challenge"]}) == 3
    back = http.get(httpx2.get(to).headers["location"])
    assert back.status_code == 303, back.text
    assert back.headers["location"] == "/t/acme/jobs?state=failed"
    page = http.get("/account").text
    assert "oidc:ada@acme" in page
    assert "admin" in page
    people = http.get("/t/acme/people").text
    assert "oidc:ada@acme" in people
    assert provider.issuer in people, "it says where roles come from"


def test_a_browser_signs_in_by_its_button(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}/t/acme/dlq")
    page.get_by_role("link", name="Sign in with your organisation").click()
    page.wait_for_url(f"{address}/t/acme/dlq")
    cookies = {each["name"]: each for each in context.cookies()}
    assert "fairlane_signing" not in cookies
    assert cookies["fairlane_session"]["httpOnly"]
    context.close()


def test_an_answer_with_another_state_is_refused(http: httpx2.Client) -> None:
    to = answered(http)
    state = parse_qs(urlsplit(to).query)["state"][0]
    is_refused(http, to.replace(state, "x" * len(state)), "began elsewhere")


def test_an_answer_without_a_state_is_refused(http: httpx2.Client) -> None:
    is_refused(http, answered(http).partition("&state=")[0], "began elsewhere")


def test_an_answer_that_another_browser_asked_for_is_refused(
    http: httpx2.Client, address: str
) -> None:
    """Somebody sends a link that would sign others in as themselves."""
    with httpx2.Client(base_url=address) as theirs:
        is_refused(http, answered(theirs), "began elsewhere")
    asked(http)
    with httpx2.Client(base_url=address) as theirs:
        is_refused(http, answered(theirs), "began elsewhere")


def test_an_answer_is_good_once(http: httpx2.Client) -> None:
    to = answered(http)
    signing = http.cookies["fairlane_signing"]
    assert http.get(to).status_code == 303
    assert "fairlane_signing" not in http.cookies
    http.cookies.clear()
    is_refused(http, to, "began elsewhere")
    http.cookies.set("fairlane_signing", signing)
    is_refused(http, to, "did not confirm the sign-in")


def test_a_code_that_was_stolen_is_of_no_use_without_the_browser(
    http: httpx2.Client, address: str
) -> None:
    """The proof of RFC 7636: who has the code lacks what it was asked with."""
    code = parse_qs(urlsplit(answered(http)).query)["code"][0]
    with httpx2.Client(base_url=address) as theirs:
        state = parse_qs(urlsplit(answered(theirs)).query)["state"][0]
        is_refused(theirs, f"{BACK}?code={code}&state={state}", "did not confirm the sign-in")


@pytest.mark.parametrize("nonce", ["of another sign-in", None, 7, ""])
def test_a_token_of_another_sign_in_is_refused(
    http: httpx2.Client, provider: Provider, nonce: object
) -> None:
    provider.person = {"nonce": nonce}
    is_refused(http, answered(http), "answers another one")


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": [AUDIENCE, "another"], "azp": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"tenant": "nobody"},
        {"tenant": None},
        {"role": "emperor"},
        {"role": None},
        {"sub": "x" * 500},
    ],
)
def test_claims_that_do_not_hold_sign_nobody_in(
    http: httpx2.Client, provider: Provider, claims: dict[str, object]
) -> None:
    provider.person = claims
    is_refused(http, answered(http), "Not signed in")


def test_a_worker_opens_no_pages(http: httpx2.Client, provider: Provider) -> None:
    provider.person = {"role": "worker", "tenant": None}
    answer = http.get(answered(http))
    assert answer.status_code == 403
    assert "opens no pages" in answer.text
    assert "fairlane_session" not in http.cookies


def test_a_client_that_does_not_prove_itself_gets_nothing(
    http: httpx2.Client, provider: Provider
) -> None:
    to = answered(http)
    provider.secret = "another"
    is_refused(http, to, "did not confirm the sign-in")


def test_who_says_no_at_the_provider_is_told_so(http: httpx2.Client) -> None:
    state = parse_qs(urlsplit(asked(http)).query)["state"][0]
    is_refused(http, f"{BACK}?error=access_denied&state={state}", "did not let you in")


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_nobody_goes_on_to_another_site(http: httpx2.Client, to: str) -> None:
    """Neither by the link that begins it nor by a cookie that somebody planted."""
    assert http.get(answered(http, next=to)).headers["location"] == "/"
    http.cookies.clear()
    back = answered(http)
    kept = json.loads(base64.urlsafe_b64decode(http.cookies["fairlane_signing"]))
    planted = base64.urlsafe_b64encode(json.dumps({**kept, "next": to}).encode()).decode()
    http.cookies.set("fairlane_signing", planted)
    assert http.get(back).headers["location"] == "/"


@pytest.mark.parametrize("cookie", ["", "x", "e30=", "W10=", "bnVsbA==", "é" * 9])
def test_a_cookie_that_somebody_wrote_begins_nothing(address: str, cookie: str) -> None:
    with httpx2.Client(base_url=address) as http:
        headers = {b"Cookie": f"fairlane_signing={cookie}".encode()}
        answer = http.get(f"{BACK}?code=x&state=", headers=headers)
        assert answer.status_code == 401
        assert "begin again" in answer.text


def test_a_provider_that_is_away_is_told_and_comes_back(stage: Stage) -> None:
    with providing() as other:
        options = {"oidc_issuer": other.issuer, "oidc_audience": AUDIENCE}
        with serving(stage.url, **options) as found, httpx2.Client(base_url=found) as http:
            other.away = True
            assert http.get("/login/oidc").status_code == 503
            other.away, other.discovery = False, {"token_endpoint": "http://127.0.0.1:9/token"}
            answer = http.get(answered(http))
            assert answer.status_code == 503
            assert "does not answer; try again" in answer.text
            assert "Sign in" in answer.text


def test_one_address_signs_in_ten_times_at_once_and_then_slower(stage: Stage) -> None:
    """Whatever it is refused for, and only where calls are limited at all."""
    from fairlane.api.app import asgi
    from fairlane.api.limits import Limits
    from fairlane.config import Settings

    app = asgi(stage.url, settings=Settings(), limits=Limits(), pages=True)
    with serving(stage.url, app=app) as found, httpx2.Client(base_url=found) as http:
        answers = [http.post("/login", data={"token": "fl_none"}) for _ in range(12)]
        assert [each.status_code for each in answers] == [401] * 10 + [429] * 2
        assert "wait a few seconds" in answers[-1].text
        good = http.post("/login", data={"token": stage.tokens["viewer"]})
        assert good.status_code == 429, "a good one is not let through either: it may be guessed"
