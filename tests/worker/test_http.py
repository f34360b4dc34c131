"""Calls to a real application server, which does all that such servers do."""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from starlette.applications import Starlette

from fairlane.core import json
from fairlane.definitions.definition import Definition
from fairlane.executors.http.calls import HttpCalls
from fairlane.executors.http.executor import HttpExecutor
from fairlane.executors.http.reach import AddressRefused, Reach
from fairlane.executors.http.resolver import CheckedResolver
from fairlane.outcome import Done, Failed, Outcome
from fairlane.worker.attempt import Attempt
from support import attempts
from support.appserver import AppServer, Told, app_server, self_signed, serving
from support.workers import Fleet, until


@pytest.fixture(scope="module")
def running() -> Iterator[AppServer]:
    with app_server() as server:
        yield server


@pytest.fixture
def server(running: AppServer) -> AppServer:
    running.told.requests.clear()
    running.told.left.clear()
    running.told.go_on.clear()
    return running


ENVIRONMENT = {
    "FAIRLANE_SECRET_KEY": "the installation's key",
    "FAIRLANE_SECRET_API_TOKEN": "tok-4711-x",
}
Make = Callable[..., HttpCalls]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Calls of a worker with another environment or other names."""
    made: list[HttpCalls] = []

    def make(environ: dict[str, str] | None = None, *addresses: list[str]) -> HttpCalls:
        names = Names(*addresses) if addresses else None
        made.append(HttpCalls(ENVIRONMENT | (environ or {}), names=names))
        return made[-1]

    yield make
    for calls in made:
        await calls.close()


@pytest.fixture
def calls(make: Make) -> HttpCalls:
    return make()


def executor(server: AppServer, path: str, calls: HttpCalls, **settings: Any) -> HttpExecutor:
    definition = Definition(
        key="gh.solve",
        version="2",
        executor="http",
        settings={"url": server.url + path, "allow_private": True, **settings},
    )
    return HttpExecutor(definition, calls)


def an_attempt(payload: dict[str, Any] | None = None, *, timeout: float = 30) -> Attempt:
    return attempts.an_attempt("gh.solve", payload, version="2", timeout=timeout, **attempts.THIRD)


async def run(executor: HttpExecutor, attempt: Attempt | None = None) -> Outcome:
    attempt = attempt or an_attempt()
    return await executor.run(attempt)


async def failure(executor: HttpExecutor, attempt: Attempt | None = None) -> Failed:
    outcome = await run(executor, attempt)
    assert isinstance(outcome, Failed), outcome
    return outcome


async def result(executor: HttpExecutor, attempt: Attempt | None = None) -> Any:
    outcome = await run(executor, attempt)
    assert isinstance(outcome, Done), outcome
    return None if outcome.result is None else json.loads(outcome.result)


# What is sent.


async def test_the_payload_is_the_body_and_the_json_of_the_answer_is_the_result(
    server: AppServer, calls: HttpCalls
) -> None:
    answer = await result(executor(server, "/echo", calls), an_attempt({"n": 1, "ü": [None]}))

    assert answer == {"method": "POST", "body": {"n": 1, "ü": [None]}}
    assert server.told.last.headers["content-type"] == "application/json"


async def test_every_call_says_whose_it_is(server: AppServer, calls: HttpCalls) -> None:
    attempt = an_attempt()

    await result(executor(server, "/echo", calls), attempt)

    headers = server.told.last.headers
    assert headers["x-correlation-id"] == "c-1"
    assert headers["idempotency-key"] == str(attempt.job_id) == headers["fairlane-job"]
    assert headers["fairlane-tenant"] == "acme"
    assert headers["fairlane-definition"] == "gh.solve"
    assert headers["fairlane-version"] == "2"
    assert headers["fairlane-attempt"] == "2"
    assert headers["user-agent"].startswith("fairlane/")
    assert headers["connection"] == "close"


async def test_the_idempotency_key_is_the_same_for_every_attempt(
    server: AppServer, calls: HttpCalls
) -> None:
    again = an_attempt()

    assert isinstance(await run(executor(server, "/fails-once", calls), again), Failed)
    again.attempt, again.number = 4, 3

    assert await result(executor(server, "/fails-once", calls), again) == {"attempt": 2}
    first, second = server.told.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.headers["fairlane-attempt"] != second.headers["fairlane-attempt"]


async def test_a_correlation_id_cannot_end_its_header(server: AppServer, calls: HttpCalls) -> None:
    attempt = an_attempt()
    attempt.correlation_id = "a\r\nX-Evil: 1\x00ü"

    await result(executor(server, "/echo", calls), attempt)

    assert server.told.last.headers["x-correlation-id"] == "a%0D%0AX-Evil: 1%00%C3%BC"
    assert "x-evil" not in server.told.last.headers


async def test_values_stay_in_their_segment_and_their_parameter(
    server: AppServer, calls: HttpCalls
) -> None:
    path = "/echo/{definition}:{version}/{payload.id}/end?q={payload.q}&r=1"
    hostile = {"id": "a/b?c#d%2e ü{tenant.id}", "q": "x&r=2=3#+ \r\n"}

    await result(executor(server, path, calls), an_attempt(hostile))

    seen = server.told.last
    assert seen.path == "/echo/gh.solve:2/a%2Fb%3Fc%23d%252e%20%C3%BC%7Btenant.id%7D/end"
    assert seen.query == "q=x%26r%3D2%3D3%23%2B%20%0D%0A&r=1"


@pytest.mark.parametrize("value", ["..", ".", "../admin", "a/../../b", "..\\admin", "..;x", ""])
async def test_a_value_cannot_climb_out_of_its_segment(
    server: AppServer, calls: HttpCalls, value: str
) -> None:
    outcome = await failure(
        executor(server, "/echo/{payload.id}", calls), an_attempt({"id": value})
    )

    assert outcome.final
    assert outcome.error["type"] == "CallRefused"
    assert server.told.requests == []


async def test_two_values_cannot_climb_out_together(server: AppServer, calls: HttpCalls) -> None:
    climbing = executor(server, "/echo/{payload.a}{payload.b}/x", calls)

    assert (await failure(climbing, an_attempt({"a": ".", "b": "."}))).final
    assert server.told.requests == []


async def test_a_value_that_is_not_there_ends_the_job(server: AppServer, calls: HttpCalls) -> None:
    outcome = await failure(executor(server, "/echo/{payload.id}", calls))

    assert outcome.final
    assert "payload.id is not there" in outcome.error["message"]


async def test_a_body_template_keeps_types(server: AppServer, calls: HttpCalls) -> None:
    body = {
        "n": "{payload.n}",
        "all": "{payload}",
        "list": ["{payload.list}", "{payload.none}", "{payload.not_there}", 1, True],
        "text": "{tenant.slug}: {payload.n} {{}}",
        "{payload.n}": "a key is literal",
    }
    payload = {"n": 7, "list": [1, {"a": None}], "none": None}

    answer = await result(executor(server, "/echo", calls, body=body), an_attempt(payload))

    assert answer["body"] == {
        "n": 7,
        "all": payload,
        "list": [[1, {"a": None}], None, None, 1, True],
        "text": "acme: 7 {}",
        "{payload.n}": "a key is literal",
    }


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_get_and_a_delete_have_no_body(
    server: AppServer, calls: HttpCalls, method: str
) -> None:
    answer = await result(executor(server, "/echo", calls, method=method), an_attempt({"n": 1}))

    assert answer == {"method": method, "body": None}
    assert "content-type" not in server.told.last.headers
    assert "webhook-signature" in server.told.last.headers


async def test_headers_are_templates_with_secrets(server: AppServer, calls: HttpCalls) -> None:
    headers = {"Authorization": "Bearer {secret.api-token}", "x-for": "{tenant.slug}/{payload.n}"}
    headers |= {"content-type": "application/vnd.solve+json"}

    await result(executor(server, "/echo", calls, headers=headers), an_attempt({"n": 7}))

    seen = server.told.last.headers
    assert seen["authorization"] == "Bearer tok-4711-x"
    assert seen["x-for"] == "acme/7"
    assert seen["content-type"] == "application/vnd.solve+json"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "a\x7fb"])
async def test_a_value_cannot_end_its_header(
    server: AppServer, calls: HttpCalls, value: str
) -> None:
    sender = executor(server, "/echo", calls, headers={"X-Name": "{payload.name}"})

    outcome = await failure(sender, an_attempt({"name": value}))

    assert outcome.final
    assert "header X-Name" in outcome.error["message"]
    assert value not in outcome.error["message"]
    assert server.told.requests == []


async def test_a_secret_that_is_not_there_is_a_failed_attempt(
    server: AppServer, calls: HttpCalls
) -> None:
    outcome = await failure(executor(server, "/echo", calls, headers={"X-A": "{secret.nope}"}))

    assert not outcome.final  # it may be there when the worker has been restarted
    assert outcome.error["type"] == "SecretMissing"
    assert "FAIRLANE_SECRET_NOPE" in outcome.error["message"]
    assert server.told.requests == []


# What comes back.


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 502, 503, 504, 599])
async def test_what_may_go_better_later_is_tried_again(
    server: AppServer, calls: HttpCalls, status: int
) -> None:
    outcome = await failure(executor(server, f"/status/{status}?key=hidden", calls))

    assert not outcome.final
    assert outcome.retry_after is None
    assert outcome.error == {
        "type": "HttpFailed",
        "message": f"POST {server.url}/status/{status} answered {status}: "
        f'{{"detail": "this is {status}"}}',
        "status": status,
    }


@pytest.mark.parametrize("status", [301, 302, 304, 400, 401, 403, 404, 409, 410, 422, 451])
async def test_what_will_not_go_better_is_final(
    server: AppServer, calls: HttpCalls, status: int
) -> None:
    outcome = await failure(executor(server, f"/status/{status}", calls))

    assert outcome.final
    assert outcome.error["status"] == status


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Retry-After=17", 17.0),
        ("Retry-After=0", 0.0),
        ("Retry-After=99999999999", 86_400.0),
        ("Date=Wed, 21 Oct 2015 07:28:00 GMT&Retry-After=Wed, 21 Oct 2015 07:30:00 GMT", 120.0),
        ("Retry-After=Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Retry-After=Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        ("Retry-After=soon", None),
        ("Retry-After=-5", None),
        ("Retry-After=1e3", None),
    ],
)
async def test_the_receiver_says_when_to_come_again(
    server: AppServer, calls: HttpCalls, header: str, seconds: float | None
) -> None:
    outcome = await failure(executor(server, f"/busy?{header.replace(' ', '%20')}", calls))

    assert outcome.retry_after == seconds
    assert outcome.error.get("retry_after") == seconds


async def test_a_redirect_is_not_followed(server: AppServer, calls: HttpCalls) -> None:
    outcome = await failure(executor(server, "/redirect", calls))

    assert outcome.final
    assert "redirects are not followed" in outcome.error["message"]
    assert [seen.path for seen in server.told.requests] == ["/redirect"]


async def test_an_answer_of_nothing_is_null(server: AppServer, calls: HttpCalls) -> None:
    assert await result(executor(server, "/status/204", calls)) is None


async def test_a_text_is_kept_with_its_status_from_its_end(
    server: AppServer, calls: HttpCalls
) -> None:
    answer = await result(executor(server, "/text", calls))

    assert answer.pop("body") == "x" * (65_536 - 8) + " the end"
    assert answer == {"status": 200, "content_type": "text/plain", "bytes": 100_008}


async def test_json_without_a_type_is_json(server: AppServer, calls: HttpCalls) -> None:
    assert await result(executor(server, "/untyped", calls)) == {"n": 1}


async def test_an_answer_that_came_packed_is_unpacked(server: AppServer, calls: HttpCalls) -> None:
    assert await result(executor(server, "/packed", calls)) == {"n": 1}
    assert server.told.last.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/bad-json", "answered 200 with application/json that is not JSON"),
        ("/unkeepable", "NUL character"),
        ("/half", "got half an answer"),
        ("/huge", "answered 200 with more than 1048576 bytes"),
        ("/bomb", "answered 200 with more than 1048576 bytes"),
    ],
)
async def test_an_answer_that_is_no_result_is_a_failed_attempt(
    server: AppServer, calls: HttpCalls, path: str, said: str
) -> None:
    outcome = await failure(executor(server, path, calls))

    assert not outcome.final
    assert outcome.error["type"] == "HttpFailed"
    assert said in outcome.error["message"]


async def test_the_size_of_an_answer_is_the_definitions_to_say(
    server: AppServer, calls: HttpCalls
) -> None:
    exactly = len('{"n": 1}')

    assert await result(executor(server, "/untyped", calls, max_response_bytes=exactly))
    outcome = await failure(executor(server, "/untyped", calls, max_response_bytes=exactly - 1))

    assert "more than 7 bytes" in outcome.error["message"]


async def test_no_secret_and_no_query_is_in_an_error(server: AppServer, calls: HttpCalls) -> None:
    headers = {"Authorization": "Bearer {secret.api-token}"}
    path = "/tells-secrets?key=k-815&for={payload.who}"

    outcome = await failure(
        executor(server, path, calls, headers=headers), an_attempt({"who": "eve"})
    )

    assert outcome.error["message"] == (
        f"POST {server.url}/tells-secrets answered 400: wrong token Bearer [redacted] !"
    )


async def test_no_half_of_a_secret_is_in_an_error(server: AppServer, calls: HttpCalls) -> None:
    headers = {"Authorization": "{secret.api-token}"}

    outcome = await failure(executor(server, "/tells-half-a-secret", calls, headers=headers))

    assert outcome.error["message"].endswith("xxx[reda")


# The signature.


def page(name: str) -> str:
    """The code of docs/http.md that starts with its file's name."""
    text = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
    found = re.search(rf"^```python\n# {re.escape(name)}\n(.*?)^```$", text, re.M | re.S)
    assert found is not None
    return found[1]


def receiver(monkeypatch: pytest.MonkeyPatch, secret: str) -> dict[str, Any]:
    """The receiver of the page, as a module's names."""
    monkeypatch.setenv("FAIRLANE_SIGNING_SECRET", secret)
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(compile(page("receiver.py"), "receiver.py", "exec", dont_inherit=True), names)
    return names


def receivers_secret(
    host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """What the page's other script prints for a host."""
    monkeypatch.setenv("FAIRLANE_SECRET_KEY", ENVIRONMENT["FAIRLANE_SECRET_KEY"])
    exec(page("receivers_secret.py").replace("app.example", host))
    return capsys.readouterr().out.strip()


async def test_the_receiver_of_the_docs_verifies_calls(
    calls: HttpCalls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = Starlette()
    with serving(app) as url:
        secret = receivers_secret(url.removeprefix("http://"), monkeypatch, capsys)
        app.mount("/right", receiver(monkeypatch, secret)["web"])
        another = receivers_secret("another.example", monkeypatch, capsys)
        app.mount("/wrong", receiver(monkeypatch, another)["web"])
        there = AppServer(url, Told())

        assert await result(executor(there, "/right/solve", calls), an_attempt({"n": 1})) == {
            "solved": {"n": 1}
        }
        assert (await failure(executor(there, "/wrong/solve", calls))).error["status"] == 401


async def test_a_changed_call_is_not_verified(
    server: AppServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    verify = receiver(monkeypatch, secret)["verify"]
    calls = make({"FAIRLANE_SECRET_NEW": "another", "FAIRLANE_SECRET_OLD": secret})
    await result(executor(server, "/echo", calls, sign_with=["new", "old"]), an_attempt({"n": 1}))
    headers, body = server.told.last.headers, server.told.last.body

    assert verify(headers, body)
    assert len(headers["webhook-signature"].split()) == 2

    assert not verify(headers, body + b" ")
    assert not verify({**headers, "webhook-id": str(uuid4())}, body)
    assert not verify({**headers, "webhook-timestamp": str(int(time.time()) + 1)}, body)
    assert not verify({**headers, "webhook-timestamp": "1614265330"}, body)
    assert not verify({**headers, "webhook-signature": "v1,ü"}, body)
    assert not verify({}, body)
    later = time.time() + 301
    monkeypatch.setattr(time, "time", lambda: later)
    assert not verify(headers, body)


async def test_without_any_key_a_call_is_not_signed(server: AppServer) -> None:
    calls = HttpCalls({})
    await result(executor(server, "/echo", calls))
    await calls.close()

    assert "webhook-signature" not in server.told.last.headers


async def test_a_definitions_own_secret_that_is_not_there_leaves_no_call_unsigned(
    server: AppServer, calls: HttpCalls
) -> None:
    outcome = await failure(executor(server, "/echo", calls, sign_with="nope"))

    assert outcome.error["type"] == "SecretMissing"
    assert server.told.requests == []


# Time.


@pytest.mark.parametrize("path", ["/hang", "/drip"])
async def test_a_call_ends_with_its_timeout(server: AppServer, calls: HttpCalls, path: str) -> None:
    outcome = await failure(executor(server, path, calls), an_attempt(timeout=0.3))

    assert outcome.outcome == "timeout"
    assert not outcome.final
    assert "0.3 s" in outcome.error["message"]
    await asyncio.to_thread(until, server.told.left.is_set, "the server sees the caller go")


@pytest.mark.parametrize("path", ["/hang", "/drip"])
async def test_a_canceled_call_is_dropped(server: AppServer, calls: HttpCalls, path: str) -> None:
    calling = asyncio.create_task(run(executor(server, path, calls)))
    await asyncio.to_thread(until, lambda: server.told.requests, "the call is on its way")

    calling.cancel()

    with pytest.raises(asyncio.CancelledError):
        await calling
    await asyncio.to_thread(until, server.told.left.is_set, "the server sees the caller go")


async def test_nobody_there_is_a_failed_attempt(server: AppServer, calls: HttpCalls) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    nobody = AppServer(f"http://127.0.0.1:{port}", server.told)

    outcome = await failure(executor(nobody, "/?key=hidden", calls))

    assert not outcome.final
    assert outcome.error["message"].startswith(f"POST http://127.0.0.1:{port}/ could not connect: ")


async def test_a_name_without_an_address_is_a_failed_attempt(calls: HttpCalls) -> None:
    nowhere = AppServer("http://nowhere.invalid", None)  # type: ignore[arg-type]

    outcome = await failure(executor(nowhere, "/", calls))

    assert not outcome.final
    assert "found no address of its host" in outcome.error["message"]


async def test_a_certificate_that_nobody_signed_is_not_trusted(
    calls: HttpCalls, tmp_path: Path
) -> None:
    with app_server(tls=self_signed(tmp_path)) as server:
        outcome = await failure(executor(server, "/echo", calls))

        assert not outcome.final
        assert "a certificate that is not trusted" in outcome.error["message"]
        assert server.told.requests == []


# Where calls may go.


class Names(AbstractResolver):
    """A name server that says what a test wants, another answer each time."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        answer = self._answers.pop(0)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in answer
        ]

    async def close(self) -> None:
        pass


def named(server: AppServer, name: str) -> AppServer:
    """The same server, reached by a name."""
    return AppServer(server.url.replace("127.0.0.1", name), server.told)


async def test_a_name_that_leads_to_a_private_address_is_refused(
    server: AppServer, make: Make
) -> None:
    calls = make({}, ["127.0.0.1"], ["10.0.0.1", "::1", "::ffff:127.0.0.1"])
    inside = executor(named(server, "inside.example"), "/echo", calls, allow_private=False)

    for _ in range(2):
        outcome = await failure(inside)
        assert outcome.final
        assert outcome.error["type"] == "CallRefused"
        assert "is not a public address" in outcome.error["message"]
    assert server.told.requests == []


async def test_a_name_is_looked_up_for_every_call_and_only_what_was_checked_is_connected_to(
    server: AppServer, make: Make
) -> None:
    allowed = {"FAIRLANE_HTTP_ALLOW": "127.0.0.0/8"}
    calls = make(allowed, ["10.255.255.1", "127.0.0.1"], ["10.255.255.1"])
    rebinding = executor(named(server, "rebinding.example"), "/echo", calls)

    assert await result(rebinding)  # of two addresses the one within reach
    outcome = await failure(rebinding)

    assert outcome.final
    assert "10.255.255.1 is not in FAIRLANE_HTTP_ALLOW" in outcome.error["message"]


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f.1", "2130706433", "0177.0.0.1"])
async def test_every_spelling_of_here_is_refused_by_its_address(host: str) -> None:
    """Past the checks of the settings: what decides is the address, not how it was written."""
    names = CheckedResolver(Reach(), aiohttp.ThreadedResolver())

    with pytest.raises(AddressRefused, match="loopback"):
        await names.resolve(host, 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"])
async def test_an_address_in_the_url_is_checked_as_well(calls: HttpCalls, host: str) -> None:
    with pytest.raises(OSError, match="Cannot connect") as refused:
        await calls.session(Reach()).get(f"http://{host}:9/")

    assert isinstance(refused.value.os_error, AddressRefused)  # type: ignore[attr-defined]


async def test_an_installation_says_where_calls_may_go(server: AppServer, make: Make) -> None:
    for allowed, host, goes in [
        ("app.example, 127.0.0.1", "127.0.0.1", True),
        ("app.example", "127.0.0.1", False),
        ("app.example", "app.example", True),
        ("*.example", "app.example", True),
        ("*.example", "example", False),
        ("*.app.example", "app.example", False),
        ("10.0.0.0/8", "app.example", False),
        ("127.0.0.0/8 ::1", "app.example", True),
    ]:
        calls = make({"FAIRLANE_HTTP_ALLOW": allowed}, ["127.0.0.1"])

        outcome = await run(executor(named(server, host), "/echo", calls))

        assert isinstance(outcome, Done) == goes, (allowed, host, outcome)


async def test_a_listed_host_is_still_not_private(server: AppServer, make: Make) -> None:
    calls = make({"FAIRLANE_HTTP_ALLOW": "app.example"}, ["127.0.0.1"])

    outcome = await failure(
        executor(named(server, "app.example"), "/echo", calls, allow_private=False)
    )

    assert outcome.error["type"] == "CallRefused"


async def test_no_proxy_of_the_environment_is_used(
    server: AppServer, calls: HttpCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert await result(executor(server, "/echo", calls))


async def test_what_a_receiver_sets_as_a_cookie_is_not_sent_again(
    server: AppServer, make: Make
) -> None:
    calls = make({}, ["127.0.0.1"], ["127.0.0.1"])
    there = named(server, "app.example")  # by a name: addresses get no cookies anyway

    await failure(executor(there, "/busy?Set-Cookie=a%3D1", calls))
    await result(executor(there, "/echo", calls))

    assert "cookie" not in server.told.last.headers


# Whole: a worker with no app of its own, and jobs in the database.

QUEUED = "select count(*) from fairlane.job where status = 'queued'"


def defined(fleet: Fleet, server: AppServer, path: str, **fields: Any) -> str:
    """A definition that calls this path; its key."""
    key = "call." + path.strip("/").partition("?")[0]
    definition = {
        "key": key,
        "executor": "http",
        "settings": {"url": server.url + path, "allow_private": True},
        "retry_delays": [0],
        **fields,
    }
    fleet.db.execute("select fairlane.apply_definitions(%s)", [json.dumps([definition])])
    return key


def test_a_job_whose_call_fails_once_succeeds_the_second_time(
    fleet: Fleet, server: AppServer
) -> None:
    key = defined(fleet, named(server, "localhost"), "/fails-once")
    fleet.worker(app=None, FAIRLANE_SECRET_KEY="k")

    job = fleet.enqueue(key, '{"n": 1}', correlation_id="c-9")

    assert fleet.until_status(job, "succeeded", "failed", "dead_letter") == "succeeded"
    assert fleet.ask("select result from fairlane.jobs where id = %s", job) == {"attempt": 2}
    first, second = server.told.requests
    assert first.body == second.body == b'{"n":1}'
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == str(job)
    assert [seen.headers["fairlane-attempt"] for seen in (first, second)] == ["1", "2"]
    assert first.headers["x-correlation-id"] == "c-9"
    assert first.headers["webhook-signature"]


def test_the_first_calls_of_a_worker_are_made_however_close_they_come(
    fleet: Fleet, server: AppServer
) -> None:
    """While the library was loading, the next job found it missing and failed."""
    key = defined(fleet, server, "/echo", max_attempts=1)
    fleet.worker("default=8", app=None)
    jobs = []
    for _ in range(8):  # one after the other, while the first one loads what it needs
        jobs.append(fleet.enqueue(key, '{"n": 1}'))
        until(lambda: not fleet.ask(QUEUED), "it is claimed")
    for job in jobs:
        assert fleet.until_status(job, "succeeded", "failed", "dead_letter") == "succeeded"


def test_a_job_whose_call_always_fails_ends_with_the_dead_letters(
    fleet: Fleet, server: AppServer
) -> None:
    key = defined(fleet, server, "/status/500", max_attempts=3)
    fleet.worker(app=None)

    job = fleet.enqueue(key)

    assert fleet.until_status(job, "dead_letter", "failed", "succeeded") == "dead_letter"
    assert len(server.told.requests) == 3
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert error["status"] == 500
    assert error["message"].startswith(f"POST {server.url}/status/500 answered 500: ")


def test_a_job_that_the_receiver_refuses_is_not_tried_again(
    fleet: Fleet, server: AppServer
) -> None:
    key = defined(fleet, server, "/status/422")
    fleet.worker(app=None)

    job = fleet.enqueue(key)

    assert fleet.until_status(job, "failed", "dead_letter") == "failed"
    assert len(server.told.requests) == 1


def test_a_job_whose_name_leads_here_is_not_called(fleet: Fleet, server: AppServer) -> None:
    url = named(server, "localhost").url + "/echo"
    key = defined(fleet, server, "/echo", settings={"url": url})
    fleet.worker(app=None)

    job = fleet.enqueue(key)

    assert fleet.until_status(job, "failed", "dead_letter", "succeeded") == "failed"
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert error["type"] == "CallRefused"
    assert "is not a public address" in error["message"]
    assert server.told.requests == []


def test_a_job_comes_again_when_the_receiver_says(fleet: Fleet, server: AppServer) -> None:
    key = defined(fleet, server, "/busy?Retry-After=3600")
    fleet.worker(app=None)

    job = fleet.enqueue(key)

    fleet.until_status(job, "scheduled")
    wait = fleet.ask(
        "select extract(epoch from scheduled_for - fairlane.clock()) from fairlane.jobs"
        " where id = %s",
        job,
    )
    assert 3_500 < wait <= 3_600


def test_a_long_call_keeps_its_lease(fleet: Fleet, server: AppServer) -> None:
    key = defined(fleet, server, "/slow")
    fleet.worker(app=None, FAIRLANE_LEASE_SECONDS="1")
    job = fleet.enqueue(key)
    until(lambda: server.told.requests, "the call is on its way")

    # Three leases long, as the database counts them.
    held = "select bool_and(lease_expires_at > %s) from fairlane.worker"
    begun = fleet.ask("select lease_expires_at from fairlane.worker")
    until(lambda: fleet.ask(held, begun + timedelta(seconds=3)), "the lease is renewed")
    server.told.go_on.set()

    assert fleet.until_status(job, "succeeded", "failed", "dead_letter") == "succeeded"
    assert len(server.told.requests) == 1


def test_canceling_a_job_drops_its_call(fleet: Fleet, server: AppServer) -> None:
    key = defined(fleet, server, "/hang")
    fleet.worker(app=None)
    job = fleet.enqueue(key)
    until(lambda: server.told.requests, "the call is on its way")

    fleet.db.execute("select fairlane.cancel(%s)", [job])

    fleet.until_status(job, "canceled")
    until(server.told.left.is_set, "the server sees the caller go")


def test_a_call_that_hangs_ends_with_the_jobs_timeout(fleet: Fleet, server: AppServer) -> None:
    key = defined(fleet, server, "/hang", timeout_seconds=1, max_attempts=1)
    fleet.worker(app=None)
    # The first call of a worker takes its time: it loads what calls need.
    fleet.until_status(fleet.enqueue(defined(fleet, server, "/echo")), "succeeded")

    job = fleet.enqueue(key)

    fleet.until_status(job, "dead_letter")
    assert fleet.ask("select outcome from fairlane.attempts where job_id = %s", job) == "timeout"
    until(server.told.left.is_set, "the server sees the caller go")
