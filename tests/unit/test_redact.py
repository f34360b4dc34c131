"""Secrets are gone by schema, path, name, shape and known value, and nothing else is."""

import base64
import html
import json
import re
import shlex
import string
import time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.definitions.definition import Definition
from fairlane.errors import Fault
from fairlane.executors.base import cut, failed
from fairlane.executors.cuts import beginning, ending
from fairlane.redact import KNOWN, MARKER, Known, Redactor, names, paths, shapes
from fairlane.redact.mask import Mask
from support.redaction import CANARY, PATHS, SCHEMAS, SECRET, planted

# By schema -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "schema", "payload", "shown"), SCHEMAS, ids=[s[0] for s in SCHEMAS]
)
def test_a_schema_says_what_is_secret(
    name: str, schema: dict[str, Any], payload: Any, shown: Any
) -> None:
    before = json.dumps(payload)

    assert Mask(paths.of_schema(schema)).hide(payload) == shown
    assert json.dumps(payload) == before, "the worker still needs it"


def test_a_schema_with_too_many_ways_through_hides_all() -> None:
    """Each of these doubles the paths; a walk of them all would never end."""
    ways = {
        f"d{n}": {
            "properties": {"l": {"$ref": f"#/$defs/d{n + 1}"}, "r": {"$ref": f"#/$defs/d{n + 1}"}}
        }
        for n in range(60)
    }
    schema = {"$defs": {**ways, "d60": SECRET}, "$ref": "#/$defs/d0"}
    started = time.process_time()

    assert Mask(paths.of_schema(schema)).hide({"l": {"l": 1}, "x": 2}) == {"l": MARKER, "x": MARKER}
    assert time.process_time() - started < 2


# By path -------------------------------------------------------------------


@pytest.mark.parametrize(("path", "payload", "shown"), PATHS)
def test_a_path_says_what_is_secret(path: str, payload: Any, shown: Any) -> None:
    assert Mask([path]).hide(payload) == shown


def test_a_whole_result_that_is_secret_is_one_marker() -> None:
    assert Mask([""]).hide("s3cret") == MARKER
    assert Mask([""]).hide([1, 2]) == MARKER


# As properties -------------------------------------------------------------


@settings(deadline=None)
@given(planted())
def test_a_planted_secret_is_gone_and_the_rest_is_as_it_was(
    case: tuple[dict[str, Any], dict[str, Any], str],
) -> None:
    _, secret, pointer = case
    hidden = Mask([pointer]).hide(secret)

    assert CANARY not in json.dumps(hidden)
    assert Mask([pointer]).hide(hidden) == hidden
    assert Mask([pointer]).covers(pointer)
    if not set(pointer.split("/")) & {"*", "**"}:
        assert json.dumps(hidden) == json.dumps(secret).replace(CANARY, MARKER)


@settings(deadline=None)
@given(planted())
def test_a_secret_never_comes_back_in_a_text(
    case: tuple[dict[str, Any], dict[str, Any], str],
) -> None:
    _, secret, pointer = case
    redactor = Redactor(Mask([pointer]), secrets=()).for_payload(secret)
    said = {"message": f"no {CANARY}!", "traceback": repr(secret), "all": json.dumps(secret)}

    error = redactor.error(said)

    assert CANARY not in json.dumps(error)
    assert redactor.error(error) == error


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_to_redact_a_text_twice_is_to_redact_it_once(text: str) -> None:
    once = shapes.hide(text)
    assert shapes.hide(once) == once


PARTS = st.sampled_from(
    [
        *("password", "token", "=", ": ", '"', "'", "\\", " ", "\n", "Bearer ", "--"),
        *("Authorization", "Cookie", "fl_", "x" * 40, "digest ", ",", "://", "a:b"),
        *("@", "eyJhbGciOiJI", ".", "-----BEGIN PRIVATE KEY-----", "hunter2", MARKER),
        *("-----END PRIVATE KEY-----", "Basic dXNlcjpwYXNz"),
    ]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PARTS, max_size=12))
def test_to_redact_twice_is_to_redact_once_in_texts_full_of_shapes(parts: list[str]) -> None:
    once = shapes.hide("".join(parts))
    assert shapes.hide(once) == once


# By shape ------------------------------------------------------------------

ALNUM = string.ascii_letters + string.digits
LONG = (ALNUM * 3)[5:]
JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890"}', bytes(range(100, 132)))
)
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-128-CBC,AB\n\n"
    f"{LONG[:64]}\n{LONG[:20]}==\n-----END RSA PRIVATE KEY-----"
)

SECRETS: list[tuple[str, str]] = [
    (f"Authorization: Bearer {CANARY}", CANARY),
    ("Authorization: Bearer abc", "abc"),
    ("authorization: token s3cr3tword", "s3cr3tword"),
    ("{'Authorization': b'Basic dXNlcjpwYXNz'}", "dXNlcjpwYXNz"),
    (f'"authorization": "{CANARY}"', CANARY),
    (f'Authorization: Digest username="ada", response="{CANARY}"', CANARY),
    ("Proxy-Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    (f"curl failed: Bearer {LONG[:30]}", LONG[:30]),
    ("tried Basic dXNlcjpwYXNz and failed", "dXNlcjpwYXNz"),
    (f"Cookie: sid={CANARY}; lang=en", CANARY),
    (f"Set-Cookie: sid={CANARY}", CANARY),
    (f"got {JWT}, which is expired", JWT),
    (f"jwt_{JWT}", JWT),
    ("AKIAIOSFODNN7EXAMPLE is not allowed", "AKIAIOSFODNN7EXAMPLE"),
    (f"ghp_{LONG[:36]}", LONG[:36]),
    (f"TOKEN_ghs_{LONG[:36]}", LONG[:36]),
    (f"github_pat_{LONG[:22]}_{LONG[:59]}", LONG[:22]),
    (f"glpat-{LONG[:20]}", LONG[:20]),
    (f"glpat-{LONG[:27]}.01.{LONG[:9]}", LONG[:9]),
    (f"xoxb-123456789012-123456789012-{LONG[:24]}", LONG[:24]),
    (f"https://hooks.slack.com/services/T00000000/B00000000/{LONG[:24]}", LONG[:24]),
    (f"sk_live_{LONG[:24]}", LONG[:24]),
    (f"whsec_{LONG[:32]}", LONG[:32]),
    (f"https://maps.example/api?k=AIza{LONG[:35]}&q=x", LONG[:35]),
    (f"ya29.{LONG[:60]}", LONG[:60]),
    (f"npm_{LONG[:36]}", LONG[:36]),
    (f"pypi-AgEIcHlwaS5vcmc{LONG[:80]}", LONG[:80]),
    (f"sk-ant-api03-{LONG[:40]}", LONG[:40]),
    (f"fl_{LONG[:32]}", LONG[:32]),
    (PEM, LONG[:20]),
    (PEM.replace("\n", "\\n"), LONG[:20]),
    (PEM[:110], LONG[:10]),
    (PEM[70:], LONG[30:50]),
    ("postgres://ada:hunter2@db.example/app", "hunter2"),
    ("postgres://ada:p@ss:w#rd@db.example/app", "ss:w#rd"),
    ("redis://:hunter2@cache:6379/0", "hunter2"),
    ("password=hunter2", "hunter2"),
    ("PGPASSWORD=hunter2 psql", "hunter2"),
    ("connect(host='db', password='hunter2')", "hunter2"),
    ('{"password": "hun\\"ter2", "user": "ada"}', "ter2"),
    ("{'password': \"it's hunter2\"}", "hunter2"),
    ('"{\\"password\\": \\"hunter2\\"}"', "hunter2"),
    ("db_password: hunter2", "hunter2"),
    ("password: swordfish", "swordfish"),
    ("api_key: 0123abcd", "0123abcd"),
    ("X-Api-Key: 0123abcd", "0123abcd"),
    ("clientSecret=abcdef", "abcdef"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("GET /cb?access_token=abcdef&state=1", "abcdef"),
    ("https://x.example/o?X-Amz-Signature=abcdef&x=1", "abcdef"),
    ("https://x.example/o?se=1&sig=abc%2Bdef", "abc%2Bdef"),
    ("Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=abc123+/=", "abc123"),
    ("tool --token hunter2 --verbose", "hunter2"),
    ("tool --db-password=hunter2", "hunter2"),
    ("config['password'] = 'hunter2'", "hunter2"),
    ("error: url: token=abcdef", "abcdef"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=[text[:40] for text, _ in SECRETS])
def test_what_looks_like_a_secret_is_gone(text: str, secret: str) -> None:
    assert secret in text
    quoted = [f"x={text!r}"] if "\\" not in text else []  # escaped twice, nobody can tell the ends
    for said in (text, f"before {text}\nafter it", *quoted):
        hidden = shapes.hide(said)
        assert secret not in hidden
        assert MARKER in hidden
        assert shapes.hide(hidden) == hidden


HARMLESS = [
    "job 0190a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b (attempt 2) failed: no route to host",
    "550e8400-e29b-41d4-a716-446655440000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "d41d8cd98f00b204e9800998ecf8427e",
    "commit fc68fa3, tag v1.2.3-rc.1, image app@sha256:abcdef",
    "01J9Z3K4M5N6P7Q8R9S0T1V2W3",
    "the password must be at least 8 characters long",
    "password: must be at least 8 characters long",
    "Invalid token: expired",
    "token: 3",
    "SyntaxError: Unexpected token: }",
    "password=None, token=null, secret=''",
    "def login(user: str, password: str, token: str | None = None) -> None:",
    "log.info('password=%s', ...)",
    "export TOKEN=$GITHUB_TOKEN",
    "PWD=/home/ada OLDPWD=/tmp",
    "max_tokens=512, total_tokens: 1024, next_page_token=abc",
    "the secretary: Ada, the author: Grace, keyboard: qwerty",
    "primary_key=7, key: value, foreign key: orders.id",
    "secret://vault/path is where it is kept",
    "basic understanding of basic authentication",
    "the bearer of good news",
    "Authorization: required",
    "Cookie: none was sent",
    "http://localhost:8080/path?email=ada@example.com",
    "http://localhost:8080?email=ada@example.com",
    "ssh://git@example.com/repo.git and https://example.com:443/",
    "mailto:ada@example.com, ratio 3:4@2x",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "eyJpZCI6MTB9 is a cursor; eyJ.a.b is nothing",
    "fl_overdue_invoices_of_the_last_quarter, ghp_short, sk-learn, npm_config_cache, glpat-x",
    "ASIAN markets, AKIAlike, ACCA members",
    "pass --token to authenticate; the one-time-password was sent; --no-password",
    "Beyoncé said: пароль — 密码 🎉",
    MARKER,
    "",
]


@pytest.mark.parametrize("text", HARMLESS, ids=[text[:40] for text in HARMLESS])
def test_what_only_comes_near_stays(text: str) -> None:
    assert shapes.hide(text) == text


MEGABYTE = 1_000_000
HOSTILE = [
    *("a", "=", ":", "-", "eyJ", "-eyJ", "eyJ.", "://", "://a:", "://a:b", "password="),
    *("password:", "password='", 'secret=\\"', "token: a ", "--a", "--token "),
    "-----BEGIN PRIVATE KEY-----",
    *("-----BEGIN ", "-----END ", "-----END PRIVATE KEY-----", "A\n", "ghp_", "glpat-", "xoxb-"),
    *("AIza", "sk-ant-", "fl_", "Bearer ", "Basic A", "authorization:", "Authorization: Digest "),
    *("cookie:", "cookie: a", "AKIA", "\\", "\"'", " \t", "][", "Basic dXNlcjpwYXNz=", "é:"),
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_megabyte_of_anything_takes_no_longer_than_its_length(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        started = time.process_time()
        shapes.hide(text)
        return time.process_time() - started

    seconds(1000)  # the patterns are compiled
    # Four times the text takes about four times as long; were it quadratic, sixteen times.
    part, whole = seconds(MEGABYTE // 4), seconds(MEGABYTE)
    assert whole < 10
    assert whole < 9 * part + 0.1


# By name -------------------------------------------------------------------


SECRET_NAMES = """
password db_password userPassword PGPASSWORD passwd secret client_secret clientSecret token
access_token X-Auth-Token authorization api_key apiKey APIKey X-API-Key AWS_SECRET_ACCESS_KEY
private_key cookie Set-Cookie credentials accesstoken
"""


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_member_with_the_name_of_a_secret_is_hidden(name: str) -> None:
    payload = {"user": "ada", name: "x", "in": [{name: {"a": 1}}]}

    assert Redactor().payload(payload) == {"user": "ada", name: MARKER, "in": [{name: MARKER}]}
    assert shapes.hide(f"got {name}=hunter2 and") == f"got {name}={MARKER} and"


OTHER_NAMES = """
user passwordless password_hint_shown secretary tokens max_tokens next_page_token tokenizer key
primary_key keyboard author authority cookies_accepted account pass compass
"""


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_a_member_with_another_name_is_not(name: str) -> None:
    assert not names.is_secret(name)
    assert Redactor().payload({name: "x"}) == {name: "x"}


def test_whether_there_is_a_secret_may_be_seen() -> None:
    payload = {"password": None, "token": True, "secret": False}
    assert Redactor().payload(payload) == payload


# By known value ------------------------------------------------------------


@pytest.mark.parametrize(
    "secret", ["s3cret/pä+ss wörd&", "quo\"ted\\and'more\n", "k" * 9, "x" * 200]
)
def test_a_known_value_is_hidden_as_it_is_and_as_it_is_encoded(secret: str) -> None:
    raw = secret.strip().encode()
    said = [
        secret,
        repr({"k": secret}),
        json.dumps({"k": secret}),
        quote(secret.strip(), safe=""),
        quote_plus(secret.strip()),
        *(base64.b64encode(b"user:"[:n] + raw + b"!").decode() for n in range(6) if len(raw) > 11),
        *(base64.urlsafe_b64encode(b"u:"[:n] + raw).decode() for n in range(3) if len(raw) > 11),
    ]
    redactor = Redactor(secrets=[secret])
    for text in said:
        hidden = redactor.text(f"<{text}>")
        assert MARKER in hidden
        # What is left of base64 is less than one byte of the secret at either end.
        assert len(hidden) <= len(MARKER) + 2 + 8 + len(f"{ {'k': ''} }")
        assert redactor.text(hidden) == hidden


ODD = "p/ä\"q'=<Zx9> & sword\\fish"


@pytest.mark.parametrize(
    "said",
    [
        json.dumps(ODD, ensure_ascii=False),
        json.dumps(ODD).replace("/", "\\/"),
        json.dumps(json.dumps({"k": ODD})),
        repr(repr(ODD)),
        quote(ODD, safe="").replace("%2F", "%2f").replace("%C3%A4", "%c3%a4"),
        quote(quote(ODD, safe=""), safe=""),
        ODD.encode().hex(),
        ODD.encode().hex().upper(),
        shlex.quote(ODD),
        "'" + ODD.replace("'", "'\\''") + "'",
        html.escape(ODD),
    ],
)
def test_a_known_value_is_hidden_however_it_is_escaped(said: str) -> None:
    said = re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), said) if "%2f" in said else said
    hidden = Redactor(secrets=[ODD]).text(said)
    assert MARKER in hidden
    assert len(hidden) <= len(MARKER) + 20
    assert "sword" not in hidden
    assert ODD.encode().hex()[:12] not in hidden.lower()


def test_a_short_value_is_hidden_in_base64() -> None:
    for before in (b"", b"u", b"u:"):
        said = base64.b64encode(before + b"Xy9_pw" + b"!").decode()
        assert MARKER in Redactor(secrets=["Xy9_pw"]).text(said)


@pytest.mark.parametrize("width", [20, 64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_base64_that_is_broken_into_lines_is_hidden(width: int, end: str) -> None:
    secret = "".join(chr(33 + n * 7 % 90) for n in range(120))
    for before in range(4):
        whole = base64.b64encode(b"user"[:before] + secret.encode()).decode()
        lines = [whole[at : at + width] for at in range(0, len(whole), width)]
        hidden = Redactor(secrets=[secret]).text(f"auth:{end}{end.join(lines)}{end}the end")
        assert not [line for line in lines if line[6:-6] and line[6:-6] in hidden]
        assert hidden.startswith("auth:")
        assert hidden.endswith(f"{end}the end")
        assert len(hidden) < 60


@pytest.mark.parametrize("secret", ["s3cr\udcff\udcfeet-value", "half a \ud800 character"])
def test_a_secret_that_is_no_utf_8_is_hidden_and_spoils_nothing(secret: str) -> None:
    """It made every line that was logged afterwards fail."""
    known = Known([secret, CANARY])
    assert known.hide(f"<{secret}>") == f"<{MARKER}>"
    assert known.hide(CANARY) == MARKER
    printed = b"s3cr\xff\xfeet-value".decode(errors="replace")
    assert Known(["s3cr\udcff\udcfeet-value"]).hide(printed) == MARKER


def test_each_line_of_a_long_secret_is_hidden() -> None:
    redactor = Redactor(secrets=["first line of it\nsecond line of it"])
    assert redactor.text("got: second line of it.") == f"got: {MARKER}."


def test_a_value_too_short_to_be_told_from_chance_is_left_alone() -> None:
    redactor = Redactor(secrets=["prod", "1", ""])
    assert redactor.text("1 of 11 in prod") == "1 of 11 in prod"


def test_a_secret_that_is_part_of_the_marker_does_not_eat_it() -> None:
    redactor = Redactor(secrets=["redacted", "canary-1"])
    assert redactor.text("canary-1") == redactor.text(redactor.text("canary-1")) == MARKER


def test_secrets_that_overlap_leave_nothing_of_each_other() -> None:
    redactor = Redactor(secrets=["abcdef123", "123xyz789", "aaaaaa"])
    assert redactor.text("<abcdef123xyz789>") == f"<{MARKER}>"
    assert redactor.text("<" + "a" * 20 + ">") == f"<{MARKER}>"


def test_a_secret_looked_up_later_is_hidden_from_then_on() -> None:
    known = Known()
    redactor = Redactor(secrets=known)
    assert redactor.text(CANARY) == CANARY
    known.add([CANARY])
    assert redactor.text(CANARY) == MARKER


def test_the_secrets_of_a_job_are_hidden_while_it_runs() -> None:
    known = Known()
    with known.during([CANARY]):
        with known.during([CANARY]):
            pass
        assert known.hide(CANARY) == MARKER, "another job has the same one"
    assert known.hide(CANARY) == CANARY


# Cut to measure ------------------------------------------------------------


@pytest.mark.parametrize("before", [*range(1_980, 2_004), 10_180, 10_185, 10_190])
def test_a_message_is_cut_without_leaving_half_a_secret(before: int) -> None:
    with KNOWN.during([CANARY]):
        failure = failed(ValueError("x" * before + CANARY * 3 + "y" * 20_000))
    error = cut(Redactor().error(failure.error))
    assert len(error["message"]) <= 2_000
    assert CANARY[:3] not in error["message"]
    assert error["message"].startswith("x" * min(before, 1_990))


@pytest.mark.parametrize("after", [*range(16_350, 16_390), 24_570, 24_576])
def test_a_traceback_is_cut_without_leaving_half_a_secret(after: int) -> None:
    with KNOWN.during([CANARY]):
        failure = failed(ValueError("y" * 40_000 + CANARY + "x" * after))
    error = cut(Redactor().error(failure.error))
    assert len(error["traceback"]) <= 16_384
    assert CANARY[-3:] not in error["traceback"]
    assert "x" * 16_000 in error["traceback"]


def test_what_shrinks_when_it_is_scrubbed_has_no_half_secret_at_its_end_either() -> None:
    """A thousand long secrets became a thousand markers, and the half one moved into sight."""
    said = f"{CANARY} " * 2_000
    scrub = Known([CANARY]).hide
    for most in range(1_000, 1_040):
        assert CANARY[:3] not in beginning(said, most, scrub)
        assert CANARY[-3:] not in ending(said, most, scrub)
        assert MARKER in beginning(said, most, scrub)
    assert ending("abc", 0, str) == ""
    assert beginning("abc", 2, str) == "ab"


def test_an_error_is_cut_to_what_is_kept() -> None:
    error = {"type": "X", "message": "m" * 9_000, "stderr_tail": "a" + "b" * 4_096, "exit_code": 3}
    assert cut(error) == {
        "type": "X",
        "message": "m" * 2_000,
        "stderr_tail": "b" * 4_096,
        "exit_code": 3,
    }


# All together --------------------------------------------------------------

DEFINITION = Definition(
    key="login",
    arg_schema={"properties": {"pin": {"type": "integer", "writeOnly": True}, "user": {}}},
    result_schema={"properties": {"session": {"format": "password"}}},
    redact=("/extra/*/value",),
)
PAYLOAD = {
    "user": "ada",
    "pin": 987654,
    "extra": [{"value": CANARY, "n": 1}],
    "api_key": "k-4711-x",
}


def test_a_payload_is_shown_without_its_secrets() -> None:
    shown = Redactor.of(DEFINITION).payload(PAYLOAD | {"url": "pg://ada:hunter2@db"})

    assert shown == {
        "user": "ada",
        "pin": MARKER,
        "extra": [{"value": MARKER, "n": 1}],
        "api_key": MARKER,
        "url": f"pg://ada:{MARKER}@db",
    }


def test_what_a_job_says_has_none_of_its_payloads_secrets() -> None:
    redactor = Redactor.of(DEFINITION).for_payload(PAYLOAD)
    error = {
        "type": "LoginFailed",
        "message": f"ada with pin 987654 and {CANARY}: refused",
        "traceback": f"  File x.py, line 3\n    login(k-4711-x)\nLoginFailed: {CANARY}",
        "details": [{"tried": CANARY, "at": 1.5}],
    }

    assert redactor.error(error) == {
        "type": "LoginFailed",
        "message": f"ada with pin {MARKER} and {MARKER}: refused",
        "traceback": f"  File x.py, line 3\n    login({MARKER})\nLoginFailed: {MARKER}",
        "details": [{"tried": MARKER, "at": 1.5}],
    }
    assert redactor.text(f"out: {CANARY}") == f"out: {MARKER}"


def test_a_result_loses_what_its_schema_marks_and_what_is_known_and_no_more() -> None:
    redactor = Redactor.of(DEFINITION, secrets=["known-secret"]).for_payload(PAYLOAD)
    signed = "https://files.example/x.pdf?X-Amz-Signature=abcdef"
    result = {"session": "abc", "url": signed, "token": "t", "said": f"known-secret, {CANARY}"}

    assert redactor.result(result) == {
        "session": MARKER,
        "url": signed,
        "token": "t",
        "said": f"{MARKER}, {MARKER}",
    }
    assert redactor.result(None) is None


def test_a_fault_does_not_quote_the_secret_it_is_about() -> None:
    faults = [
        Fault("/pin", '"12" is not of type integer'),
        Fault("/extra/0/value/deep", '"x" is too short'),
        Fault("/user", '"" is too short'),
        Fault("", 'password="hunter2" is not expected'),
    ]
    told = Redactor.of(DEFINITION).faults(faults)

    assert [fault.pointer for fault in told] == [fault.pointer for fault in faults]
    assert "secret" in told[0].message
    assert "secret" in told[1].message
    assert told[2] == faults[2]
    assert "hunter2" not in told[3].message


def test_what_is_not_json_is_left_to_who_writes_it() -> None:
    thing = object()
    assert Redactor().value({"a": thing, "b": (1, "password=hunter2"), 3: None}) == {
        "a": thing,
        "b": [1, f"password={MARKER}"],
        3: None,
    }
