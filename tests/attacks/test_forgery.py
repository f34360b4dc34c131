"""Every form of the pages, sent from somewhere else, without its word, or with another's (S21)."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from attacks.tally import tallied
from attacks.test_matrix import everything
from fairlane.web.pages import PAGES, Page
from support.cluster import Cluster
from support.core import Core
from web.ops_stage import furnish
from web.stage import Stage, dress, serving
from web.test_pages import client, path_of
from web.test_signing_in import token_of

POSTS = [page for page in PAGES if page.method == "POST"]
GETS = [page for page in PAGES if page.method == "GET" and page.needs and page.name != "events"]


@pytest.fixture(scope="module")
def stage(cluster: Cluster, template: str) -> Iterator[Stage]:
    with cluster.fresh(template) as url, serving(url) as address:
        found = Stage(url, address)
        found.do(lambda core: dress(core, found))
        found.do(lambda core: furnish(core, found))
        yield found


def print_of(stage: Stage) -> dict[str, str]:
    """Of all that a form can change: sessions are touched by every visit."""
    found: dict[str, str] = stage.do(everything)
    del found["web_session"], found["audit"]
    return found


ELSEWHERE = [
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "null"},
]
# What a page elsewhere can send without being asked first, whatever a form would send.
KINDS = ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"]


@pytest.mark.parametrize("every_way", [False, pytest.param(True, marks=pytest.mark.scene_long)])
def test_no_form_is_taken_from_another_site_nor_without_its_own_word(
    stage: Stage, every_way: bool
) -> None:
    """As an operator, who may do everything: nothing stands between but the form's own guard."""
    before = print_of(stage)
    with (
        client(stage, "operator") as http,
        client(stage, "operator") as other,
        tallied("forged forms") as tally,
    ):
        word = token_of(http.get("/account").text)
        theirs = token_of(other.get("/account").text)
        for page in POSTS:
            path = path_of(page, stage)
            tries: list[tuple[dict[str, str], dict[str, str]]] = [
                ({"_token": word}, headers) for headers in ELSEWHERE[: None if every_way else 1]
            ]
            if page.is_guarded:
                tries += [({}, {}), ({"_token": theirs}, {})]
            if page.is_guarded and every_way:
                tries += [({"_token": ""}, {}), ({"_token": word[:-1]}, {})]
                tries += [({"_token": word.upper()}, {})]
            for data, headers in tries:
                answer = http.post(path, data=data, headers=headers)
                tally.injected += 1
                tally.operations += 1
                cell = f"{page.name}, {data.keys()}, {headers}: {answer.status_code}"
                tally.hold(answer.status_code == 403, cell)
            for kind in KINDS if page.is_guarded and every_way else ():
                answer = http.post(path, content=b"a=1", headers={"Content-Type": kind})
                tally.injected += 1
                tally.hold(answer.status_code in (400, 403), f"{page.name}, {kind}: {answer}")
        tally.hold(print_of(stage) == before, "a forged form has changed something")
    assert len(POSTS) > 40


@pytest.mark.scene
def test_a_page_that_is_read_changes_nothing_whatever_its_query_says(stage: Stage) -> None:
    """An image on another site can make a browser read a page."""
    before = print_of(stage)
    with client(stage, "operator") as http, tallied("changes by reading") as tally:
        for page in GETS:
            query = {"action": "cancel", "do": "delete", "confirm": "yes", "_method": "DELETE"}
            answer = http.get(path_of(page, stage), params=query)
            tally.injected += 1
            tally.hold(answer.status_code < 500, f"{page.name}: {answer.status_code}")
        for page in POSTS:
            if page.path in {each.path for each in PAGES if each.method == "GET"}:
                continue
            answer = http.get(path_of(page, stage))
            tally.injected += 1
            tally.hold(answer.status_code in (404, 405), f"GET {page.name}: {answer.status_code}")
        tally.hold(print_of(stage) == before, "a page that was read has changed something")


def test_a_session_opens_no_call_of_the_api(stage: Stage) -> None:
    """A token is never read from a cookie: what a browser sends by itself is nobody's word."""
    with client(stage, "operator") as http:
        for path in ("/api/v1/me", "/api/v1/admin/tenants", "/api/v1/jobs?tenant=acme"):
            assert http.get(path).status_code == 401
        body = {"slug": "forged"}
        assert http.post("/api/v1/admin/tenants", json=body).status_code == 401


@pytest.mark.parametrize("page", [page for page in POSTS if page.of_tenant], ids=lambda p: p.name)
def test_a_form_about_another_tenant_finds_nothing(stage: Stage, page: Page) -> None:
    """By the right word of the right session: the path names acme, and the admin is globex's."""
    with client(stage, "rival") as http:
        word = token_of(http.get("/account").text)
        answer = http.post(path_of(page, stage), data={"_token": word})
    assert answer.status_code == 404
    assert "not yours" in answer.text


def test_a_thing_of_another_tenant_below_ones_own_path_is_not_there(stage: Stage) -> None:
    """`/t/globex/jobs/<acme's>`: the path is theirs and the id is not."""
    with client(stage, "rival") as http, tallied("ids under another path") as tally:
        word = token_of(http.get("/account").text)
        for page in PAGES:
            if not page.of_tenant or page.path.count("{") < 2:
                continue
            path = path_of(page, stage, "globex")
            if page.method == "GET":
                answer = http.get(path)
            else:
                answer = http.post(path, data={"_token": word, "note": "x", "action": "resolve"})
            tally.injected += 1
            tally.hold(answer.status_code == 404, f"{page.name}: {answer.status_code}")


async def role_is(core: Core, subject: str, role: str) -> Any:
    return await core.fetch(
        "update fairlane.web_session set role = $2 where subject = $1", subject, role
    )


def test_a_role_that_changes_holds_from_the_next_request_on(stage: Stage) -> None:
    """Nothing is remembered of a session between two requests, in any process (S22)."""
    with client(stage, "admin") as http, serving(stage.url) as address:
        secret = http.cookies["fairlane_session"]
        with httpx2.Client(base_url=address, cookies={"fairlane_session": secret}) as elsewhere:
            assert http.get("/t/acme/keys").status_code == 200
            assert elsewhere.get("/t/acme/keys").status_code == 200
            subject = f"token:{stage.tokens['admin'].split('_')[1]}"
            stage.do(lambda core: role_is(core, subject, "viewer"))
            for each in (http, elsewhere):
                assert each.get("/t/acme/keys").status_code == 403
                assert each.get("/t/acme/jobs").status_code == 200
            stage.do(lambda core: role_is(core, subject, "admin"))


def test_signing_out_ends_the_streams_of_that_session_and_no_other(stage: Stage) -> None:
    with client(stage, "viewer") as http, client(stage, "viewer") as other:
        word = token_of(http.get("/account").text)
        asked = {"topics": "jobs:acme"}
        with (
            http.stream("GET", "/events", params=asked) as mine,
            other.stream("GET", "/events", params=asked) as theirs,
        ):
            lines, others = mine.iter_lines(), theirs.iter_lines()
            assert next(lines)
            assert next(others)
            with httpx2.Client(base_url=stage.address, cookies=dict(http.cookies)) as second:
                assert second.post("/logout", data={"_token": word}).status_code == 303
            told = list(lines)  # it ends
            assert any("signed out" in line for line in told), told
            stage.do(lambda core: core.enqueue("acme", "email.send"))
            assert any("dirty" in line for line in others)
