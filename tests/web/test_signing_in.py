"""Sessions, forgery, redirects: what keeps one person's pages from another's hands."""

import time

import httpx2
import pytest

from fairlane.web.urls import safe_next
from support.core import Core
from web.stage import Stage
from web.test_pages import client

JOB = "/t/acme/jobs/{}/cancel"


def token_of(page: str) -> str:
    return page.split('name="_token" value="', 1)[1].split('"', 1)[0]


def test_a_session_is_a_cookie_that_no_script_reads(stage: Stage) -> None:
    with httpx2.Client(base_url=stage.address) as http:
        answer = http.post("/login", data={"token": stage.tokens["viewer"]})
    cookie = next(each for each in answer.headers.get_list("set-cookie") if "session" in each)
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/" in cookie
    assert stage.tokens["viewer"] not in cookie


@pytest.mark.parametrize("token", ["", "fl_none", "worker", "x" * 5000])
def test_a_token_that_opens_nothing_is_refused_on_the_form(stage: Stage, token: str) -> None:
    with httpx2.Client(base_url=stage.address) as http:
        answer = http.post("/login", data={"token": stage.tokens.get(token, token)})
        assert answer.status_code in (401, 403, 429)
        assert "Sign in" in answer.text
        assert "fairlane_session" not in http.cookies


def test_signing_out_ends_the_session_on_the_server(stage: Stage) -> None:
    with client(stage, "viewer") as http:
        kept = http.cookies["fairlane_session"]
        word = token_of(http.get("/account").text)
        assert http.post("/logout", data={"_token": word}).status_code == 303
        http.cookies.set("fairlane_session", kept)
        assert http.get("/t/acme").headers["location"].startswith("/login")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
    ],
)
def test_another_site_changes_nothing(stage: Stage, headers: dict[str, str]) -> None:
    with client(stage, "member") as http:
        word = token_of(http.get("/t/acme/jobs").text)
        answer = http.post(JOB.format(stage.jobs["queued"]), data={"_token": word}, headers=headers)
    assert answer.status_code == 403
    assert "another site" in answer.text


def test_a_form_of_another_session_changes_nothing(stage: Stage) -> None:
    with client(stage, "member") as mine, client(stage, "admin") as theirs:
        word = token_of(theirs.get("/t/acme/jobs").text)
        for data in ({"_token": word}, {}):
            answer = mine.post(JOB.format(stage.jobs["queued"]), data=data)
            assert answer.status_code == 403
            assert "load the page again" in answer.text


def test_a_viewer_has_no_buttons_and_the_server_checks_again(stage: Stage) -> None:
    with client(stage, "viewer") as http:
        page = http.get(f"/t/acme/jobs/{stage.jobs['queued']}").text
        assert "Cancel job" not in page
        word = token_of(page)
        answer = http.post(JOB.format(stage.jobs["queued"]), data={"_token": word})
    assert answer.status_code == 403
    assert "the role member" in answer.text


@pytest.mark.parametrize(
    "given",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "evil",
        "",
        "/" + "a" * 3000,
    ],
)
def test_nobody_is_sent_to_another_site(given: str) -> None:
    assert safe_next("", given) is None


def test_whoever_signs_in_goes_on_where_they_were(stage: Stage) -> None:
    assert safe_next("/ops", "/ops/t/acme?x=1") == "/ops/t/acme?x=1"
    assert safe_next("/ops", "/t/acme") is None
    with httpx2.Client(base_url=stage.address) as http:
        data = {"token": stage.tokens["viewer"], "next": "/t/acme/jobs?state=failed"}
        assert http.post("/login", data=data).headers["location"] == "/t/acme/jobs?state=failed"


def test_a_fragment_is_the_same_partial_and_unchanged_is_304(stage: Stage) -> None:
    """Also when time has passed: the browser itself keeps going how long ago something was."""

    async def ended(core: Core) -> None:
        await core.cancel(await core.enqueue("globex", "email.send"))

    stage.do(ended)
    with client(stage, "rival") as http:
        path = "/t/globex/jobs?state=canceled"
        whole = http.get(path).text
        part = http.get(path, headers={"X-Fragment": "jobs"})
        assert part.text.startswith('<section id="jobs"')
        assert "<html" in whole
        assert "<html" not in part.text
        headers = {"X-Fragment": "jobs", "If-None-Match": part.headers["etag"]}
        deadline = time.monotonic() + 3
        while (later := http.get(path, headers={"X-Fragment": "jobs"})).text == part.text:
            assert time.monotonic() < deadline, "a second passes, and the text tells it"
        assert later.headers["etag"] == part.headers["etag"]
        again = http.get(path, headers=headers)
        assert again.status_code == 304
        assert again.content == b""
        assert http.get("/t/globex/jobs?state=failed", headers=headers).status_code == 200
        assert http.get(path, headers={"X-Fragment": "../base"}).status_code == 404


@pytest.mark.parametrize("topic", ["ops", "jobs:globex", "nothing:acme", "job:x:acme", "jobs"])
def test_a_stream_tells_nobody_of_what_is_not_theirs(stage: Stage, topic: str) -> None:
    with client(stage, "admin") as http:
        assert http.get("/events", params={"topics": topic}).status_code == 403
