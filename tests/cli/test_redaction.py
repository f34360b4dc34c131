"""Nothing that the command line prints or logs has a secret in it."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cli.calling import Call, Floor
from fairlane.config import Settings
from fairlane.observe import logs
from fairlane.redact import KNOWN, MARKER

CANARY = "canary-7f3a9c"


def everything_about(job: str) -> Iterator[tuple[str, ...]]:
    for command in ("show", "attempts"):
        yield ("jobs", command, job)
        yield ("jobs", command, job, "--json")
    yield ("jobs", "show", job, "--message")
    yield ("jobs", "list", "--json")
    yield ("jobs", "list")


def test_what_looks_like_a_secret_is_not_shown_though_nobody_declared_it(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    payload = {
        "api_key": CANARY,
        "db": f"postgres://ada:{CANARY}@db.example/app",
        "headers": [{"Authorization": f"Bearer {CANARY}"}],
        "user": "ada",
    }
    job = floor.died(acme, "a.task", f"login with password={CANARY} failed", payload=payload)

    for words in (
        *everything_about(str(job)),
        ("dead", "show", str(job)),
        ("dead", "show", str(job), "--json"),
        ("dead", "list"),
        ("dead", "list", "--json"),
    ):
        answer = fairlane(*words)
        assert answer.status == 0
        assert CANARY not in answer.out + answer.err, words
    assert fairlane("dead", "show", str(job), "--json").json["payload"] == {
        "api_key": MARKER,
        "db": f"postgres://ada:{MARKER}@db.example/app",
        "headers": [{"Authorization": MARKER}],
        "user": "ada",
    }
    shown = fairlane("jobs", "show", str(job), "--json").json
    assert shown["last_error"]["message"] == f"login with password={MARKER} failed"


def test_what_a_schema_calls_secret_is_not_shown(fairlane: Call, floor: Floor, acme: str) -> None:
    schema = {"properties": {"pin": {"type": "integer", "writeOnly": True}}}
    floor.define("login", arg_schema=schema, redact=["/users/*/mail"])
    payload = {"pin": 4711, "users": [{"mail": CANARY, "n": 1}]}
    job = floor.enqueue(acme, "login", payload=payload)

    for words in everything_about(str(job)):
        answer = fairlane(*words)
        assert "4711" not in answer.out
        assert CANARY not in answer.out
    shown = fairlane("jobs", "show", str(job), "--json").json["payload"]
    assert shown == {"pin": MARKER, "users": [{"mail": MARKER, "n": 1}]}


# Log lines -----------------------------------------------------------------


@pytest.fixture(params=["console", "json"])
def lines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the long-running commands log, in either form."""
    settings = replace(
        Settings(),
        log_format=request.param,
        secret_key="the-key-of-this-installation",
    )
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        logs.log_to_stderr(settings)
        yield stderr
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.mark.parametrize(
    ("message", "args"),
    [
        ("connecting to %s", (f"postgres://ada:{CANARY}@db",)),
        (f"password={CANARY}", ()),
        ("header %r", ({"Authorization": f"Bearer {CANARY}"},)),
        ("%(token)s is refused", {"token": "known-" + CANARY}),
        ("signed with %s", ("the-key-of-this-installation",)),
    ],
)
def test_no_log_line_has_a_secret(lines: io.StringIO, message: str, args: Any) -> None:
    with KNOWN.during(["known-" + CANARY]):
        logging.getLogger("anybody").warning(message, *([args] if isinstance(args, dict) else args))

    said = lines.getvalue()
    assert CANARY not in said
    assert "the-key-of" not in said
    assert MARKER in said
    assert said.count("\n") == 1


def test_no_traceback_in_the_log_has_a_secret(lines: io.StringIO) -> None:
    try:
        raise ValueError(f"no login with api_key='{CANARY}'")
    except ValueError:
        logging.getLogger("anybody").exception("it broke")

    assert CANARY not in lines.getvalue()
    assert "ValueError: no login with api_key=" in lines.getvalue().replace('\\"', '"')


def test_no_field_of_a_log_line_has_a_secret(lines: io.StringIO) -> None:
    class Thing:
        def __repr__(self) -> str:
            return f"Thing(token='{CANARY}')"

    for value in (CANARY, {"deep": [CANARY]}, Thing()):
        fields = {"token": value, "pages": 3, "thing": Thing() if isinstance(value, Thing) else 1}
        logging.getLogger("fairlane.job").info("done", extra={"fields": fields, "tenant": "acme"})

    said = lines.getvalue()
    assert CANARY not in said
    assert said.count("\n") == 3
    assert said.count("pages") == 3
    assert said.count("acme") == 3


def test_an_ordinary_line_is_left_as_it_is(lines: io.StringIO) -> None:
    text = 'reports.generate 0190a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b (attempt 1) failed: "no paper"'
    logging.getLogger("fairlane.worker").warning(text)

    said = lines.getvalue()
    assert text in (json.loads(said)["message"] if said.startswith("{") else said)
