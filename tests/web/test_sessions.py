"""How a session begins, how long it lasts, and how it ends."""

from collections.abc import Iterator
from datetime import timedelta

import httpx2
import pytest

from fairlane.access import tokens
from fairlane.access.roles import Role
from support.clock import Clock
from web.stage import Stage, serving
from web.test_pages import client
from web.test_signing_in import token_of

COOKIE = "fairlane_session"
CANCEL = "/t/acme/jobs/{}/cancel"


@pytest.fixture
def clock(stage: Stage) -> Iterator[Clock]:
    """The stage's, set back afterwards."""
    with Clock.of(stage.url) as found:
        yield found
    reset = "update fairlane_test.clock set now_offset = interval '0'"
    stage.do(lambda core: core.fetch(reset))


def is_in(http: httpx2.Client) -> bool:
    answer = http.get("/t/acme")
    assert answer.status_code in (200, 303)
    return answer.status_code == 200


def test_a_session_ends_twelve_hours_after_the_last_visit(stage: Stage, clock: Clock) -> None:
    with client(stage, "viewer") as http:
        for _ in range(3):
            clock.advance(hours=11, minutes=58)
            assert is_in(http), "a visit keeps it"
        clock.advance(hours=12, minutes=1)
        assert not is_in(http)


def test_a_session_ends_after_seven_days_whoever_visits(stage: Stage, clock: Clock) -> None:
    with client(stage, "viewer") as http:
        for _ in range(15):
            clock.advance(hours=11)
            assert is_in(http)
        clock.advance(hours=2)
        assert is_in(http), "167 hours"
        clock.advance(hours=1, minutes=1)
        assert not is_in(http)


def test_a_token_that_ends_ends_its_sessions(stage: Stage, clock: Clock) -> None:
    lasts = timedelta(hours=1)
    made = stage.do(
        lambda core: tokens.create(core.conn, Role.VIEWER, tenant="acme", expires_in=lasts)
    )
    stage.tokens["short"] = made.token
    with client(stage, "short") as http:
        clock.advance(minutes=59)
        assert is_in(http)
        clock.advance(minutes=2)
        assert not is_in(http)


def test_a_token_that_is_revoked_ends_all_its_sessions_at_once(stage: Stage) -> None:
    made = stage.do(lambda core: tokens.create(core.conn, Role.MEMBER, tenant="acme"))
    stage.tokens["gone"] = made.token
    with (
        client(stage, "gone") as one,
        client(stage, "gone") as two,
        client(stage, "viewer") as not_it,
    ):
        word = token_of(one.get("/t/acme/jobs").text)
        stage.do(lambda core: tokens.revoke(core.conn, made.id))
        assert not is_in(one)
        assert not is_in(two)
        assert is_in(not_it)
        answer = one.post(CANCEL.format(stage.jobs["queued"]), data={"_token": word})
        assert answer.status_code == 401
        assert one.get("/t/acme", headers={"X-Fragment": "overview"}).status_code == 401
        assert one.get("/events", params={"topics": "jobs:acme"}).status_code == 401


def test_a_secret_that_was_planted_is_never_signed_in(stage: Stage) -> None:
    """Session fixation: signing in always makes a new secret, and ends the session before."""
    with httpx2.Client(base_url=stage.address) as http:
        http.cookies.set(COOKIE, "planted-by-somebody-else-who-waits")
        assert http.post("/login", data={"token": stage.tokens["viewer"]}).status_code == 303
        first = next(
            each.value for each in http.cookies.jar if each.value and len(each.value) == 43
        )
        with httpx2.Client(base_url=stage.address) as theirs:
            theirs.cookies.set(COOKIE, "planted-by-somebody-else-who-waits")
            assert not is_in(theirs)
    with httpx2.Client(base_url=stage.address, cookies={COOKIE: str(first)}) as again:
        answer = again.post("/login", data={"token": stage.tokens["member"]})
        second = answer.headers["set-cookie"].split(f"{COOKIE}=", 1)[1].split(";", 1)[0]
        assert second != first
    for secret, good in ((first, False), (second, True)):
        with httpx2.Client(base_url=stage.address, cookies={COOKIE: str(secret)}) as http:
            assert is_in(http) is good


@pytest.mark.parametrize(
    ("base", "secure", "path"),
    [
        (None, False, "/"),
        ("https://jobs.example.com", True, "/"),
        ("https://example.com/jobs", True, "/jobs"),
    ],
)
def test_cookies_are_for_us_alone_and_for_https_where_that_is_spoken(
    stage: Stage, base: str | None, secure: bool, path: str
) -> None:
    options = {} if base is None else {"base_url": base}
    with serving(stage.url, **options) as address, httpx2.Client(base_url=address) as http:
        answer = http.post("/login", data={"token": stage.tokens["viewer"]})
        assert answer.status_code == 303
        cookies = answer.headers.get_list("set-cookie")
        assert {each.partition("=")[0] for each in cookies} == {COOKIE, "fairlane_form"}
        for cookie in cookies:
            parts = {part.strip().lower() for part in cookie.split(";")[1:]}
            assert {"httponly", "samesite=lax", f"path={path}"} <= parts
            assert ("secure" in parts) is secure
            assert not any(part.startswith("domain") for part in parts)


# What a browser says of a request, and whether it may change something.
HERE = "{address}"
CASES = [
    ({}, True, True),  # no browser: it has the session and the form's word
    ({"Origin": HERE}, True, True),
    ({"Origin": HERE, "Sec-Fetch-Site": "same-origin"}, True, True),
    ({"Sec-Fetch-Site": "none"}, True, True),
    ({"Origin": HERE, "Sec-Fetch-Site": "same-origin"}, False, False),
    ({}, False, False),
    ({"Origin": "http://127.0.0.1:1"}, True, False),
    ({"Origin": HERE + ".evil.example"}, True, False),
    ({"Origin": "http://evil.example"}, True, False),
    ({"Origin": "null"}, True, False),
    ({"Origin": ""}, True, False),
    ({"Origin": HERE, "Sec-Fetch-Site": "cross-site"}, True, False),
    ({"Origin": HERE, "Sec-Fetch-Site": "same-site"}, True, False),
    ({"Sec-Fetch-Site": "cross-site"}, True, False),
    ({"Sec-Fetch-Site": "anything"}, True, False),
]


@pytest.mark.parametrize(("headers", "knows", "may"), CASES)
def test_a_change_comes_from_a_page_of_ours_and_knows_its_word(
    stage: Stage, headers: dict[str, str], knows: bool, may: bool
) -> None:
    said = {name: value.format(address=stage.address) for name, value in headers.items()}
    with client(stage, "viewer") as http:
        word = token_of(http.get("/account").text) if knows else "x" * 64
        answer = http.post("/account", data={"_token": word, "theme": "dark"}, headers=said)
        assert answer.status_code == (303 if may else 403)
        assert ("fairlane_prefs" in http.cookies) is may


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_nobody_is_signed_in_from_another_site(stage: Stage, headers: dict[str, str]) -> None:
    """Else somebody works under another's name, and tells them all."""
    with httpx2.Client(base_url=stage.address) as http:
        answer = http.post("/login", data={"token": stage.tokens["viewer"]}, headers=headers)
        assert answer.status_code == 403
        assert COOKIE not in http.cookies


def test_signing_out_ends_the_session_everywhere_and_forgets_the_cookie(stage: Stage) -> None:
    with client(stage, "viewer") as http, serving(stage.url) as other:
        secret = http.cookies[COOKIE]
        with httpx2.Client(base_url=other, cookies={COOKIE: secret}) as elsewhere:
            assert is_in(elsewhere), "another server process knows it"
            word = token_of(http.get("/account").text)
            answer = http.post("/logout", data={"_token": word})
            assert COOKIE not in http.cookies
            assert answer.headers["clear-site-data"] == '"cache"'
            assert not is_in(elsewhere)
