"""Bodies, schemas and patterns made to cost: refused in little time, and nothing is fetched (S24,
S25)."""

import time
from typing import Any

import pytest

from api.world import World
from attacks.cast import Player
from attacks.tally import tallied
from unit.schemas.test_guard import HOSTILE

PATIENCE = 1.5  # seconds of this process, server and caller together
DEEP = 100_000
BODY = 1024 * 1024


def job(payload: str) -> bytes:
    return b'{"definition_key": "a.task", "payload": ' + payload.encode() + b"}"


BOMBS: dict[str, bytes] = {
    "deep arrays": job('{"a": ' + "[" * DEEP + "]" * DEEP + "}"),
    "deep objects": job('{"a":' * DEEP + "1" + "}" * DEEP),
    "deep and open": job("[" * DEEP),
    "deep strings": job('{"a": "' + "\\u005b" * DEEP + '"'),
    "many digits": job('{"a": ' + "9" * 900_000 + "}"),
    "many decimals": job('{"a": 0.' + "3" * 900_000 + "}"),
    "a large exponent": job('{"a": 1e' + "9" * 900 + "}"),
    "a small exponent": job('{"a": 1e-' + "9" * 900_000 + "}"),
    "minus nothing": job('{"a": -}'),
    "twice": job('{"a": 1, "a": 2}'),
    "twice in disguise": job('{"a": 1, "\\u0061": 2}'),
    "NaN": job('{"a": NaN}'),
    "Infinity": job('{"a": -Infinity}'),
    "half a character": job('{"a": "\\ud800"}'),
    "nothing in a text": job('{"a": "\\u0000"}'),
    "nothing in a name": job('{"\\u0000": 1}'),
    "no UTF-8": b'{"definition_key": "\xff"}',
    "UTF-16": '{"definition_key": "a.task"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + job("{}"),
    "two documents": job("{}") + job("{}"),
    "a comment": b'{"definition_key": "a.task" /* */}',
    "a proto": job('{"a": 1}').replace(b'"payload"', b'"__proto__"'),
    "more than a body": job('{"a": "' + "x" * (2 * BODY) + '"}'),
    "a megabyte of spaces": job("{}") + b" " * (2 * BODY),
    "nothing at all": b"",
}
FINE = {"deep strings", "many digits", "many decimals", "a small exponent", "a byte order mark"}


async def test_a_body_made_to_cost_is_refused_in_little_time(cast: dict[str, Player]) -> None:
    caller = cast["member"].caller
    with tallied("JSON bombs") as tally:
        for path in ("/jobs", "/jobs/batch", "/events"):
            for name, body in BOMBS.items():
                began = time.process_time()
                answer = await caller.call(
                    "POST", path, content=body, headers={"Content-Type": "application/json"}
                )
                took = time.process_time() - began
                tally.injected += 1
                good = 400 <= answer.status_code < 500
                said = f"{name} to {path}: {answer.status_code} {answer.text[:200]}"
                tally.hold(good or (name in FINE and answer.status_code < 300), said)
                tally.hold(took < PATIENCE, f"{name} to {path} took {took:.2f} s")
                tally.hold(len(answer.content) < 10_000, f"{name} to {path} answers at length")


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(
    cast: dict[str, Player],
) -> None:
    """Without a length, in pieces: as many are taken as may be, and no more."""
    sent = 0

    async def endless() -> Any:
        nonlocal sent
        while sent < 64 * BODY:
            sent += 65_536
            yield b" " * 65_536

    answer = await cast["member"].caller.call(
        "POST", "/jobs", content=endless(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    # The transport of a test reads ahead; a real one is cut off by its own test (api/test_limits).
    length = {"Content-Type": "application/json", "Content-Length": str(100 * BODY)}
    answer = await cast["member"].caller.call("POST", "/jobs", content=b"", headers=length)
    assert answer.status_code == 413


# One that names its own type, and those that cannot be sent as JSON, are judged there alone.
SENDABLE = [
    name
    for name, (schema, _) in HOSTILE.items()
    if isinstance(schema, dict)
    and "type" not in schema
    and name not in ("not JSON", "as deep as can be")
]


@pytest.mark.parametrize("name", SENDABLE)
async def test_a_hostile_schema_is_refused_by_the_api_in_little_time(name: str) -> None:
    """The same as tests/unit/schemas judges, by the check that the call makes."""
    from fairlane.definitions.check import check
    from fairlane.errors import DefinitionInvalid

    body = {"key": "hostile", "arg_schema": {"type": "object", **HOSTILE[name][0]}}
    began = time.process_time()
    with pytest.raises(DefinitionInvalid):
        check(body, queues={"default"})
    assert time.process_time() - began < PATIENCE


PATTERNS = [
    *("^(a+)+$", "^(a|aa)+$", "^(a|a)*$", "^(.*a){20}$", "(x+x+)+y", "^([a-z]+)*$"),
    *("^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){30}a{30}", "^(\\w+\\s?)*$", ".*.*=.*"),
]


async def test_a_pattern_that_others_hang_on_takes_no_time(
    world: World, cast: dict[str, Player]
) -> None:
    """Catastrophic for a matcher that goes back; ours never does."""
    with tallied("patterns that hang") as tally:
        for number, pattern in enumerate(PATTERNS):
            schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
            define = {"key": f"p{number}", "arg_schema": schema}
            made = await cast["operator"].caller.post("/admin/jobs/definitions", define)
            if made.status_code == 422:
                tally.injected += 1
                tally.hold(True, "")
                continue
            payload = {"a": "a" * 50_000 + "!"}
            began = time.process_time()
            answer = await cast["member"].caller.post(
                "/jobs", {"definition_key": f"p{number}", "payload": payload}
            )
            took = time.process_time() - began
            tally.injected += 1
            tally.hold(answer.status_code in (202, 422), f"{pattern}: {answer.text[:200]}")
            tally.hold(took < PATIENCE, f"{pattern} took {took:.2f} s")
