"""Schemas that would call out, hang or fill the memory are refused, all faults at once."""

import gc
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fairlane import schemas
from fairlane.errors import DefinitionInvalid, Fault

PATIENCE = 0.1  # seconds for a refusal


@contextmanager
def timed() -> Iterator[list[float]]:
    """CPU seconds of this thread, and without the collector: what other tests have left behind, be
    it threads or garbage, is not counted."""
    took: list[float] = []
    gc.disable()
    began = time.thread_time()
    try:
        yield took
    finally:
        took.append(time.thread_time() - began)
        gc.enable()


def faults(schema: Any, **options: bool) -> list[Fault]:
    with pytest.raises(DefinitionInvalid) as refused:
        schemas.compile(schema, **options)
    return refused.value.faults


def nest(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def doubling(levels: int, keyword: str = "anyOf") -> dict[str, Any]:
    twice = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**twice, f"d{levels}": {"type": "integer"}}}


def laughing(levels: int) -> dict[str, Any]:
    """Defaults that double with each level."""
    twice = {
        f"d{n}": {
            "default": {},
            "properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}, "b": {"$ref": f"#/$defs/d{n + 1}"}},
        }
        for n in range(levels)
    }
    return {
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {**twice, f"d{levels}": {"default": 1}},
    }


HOSTILE: dict[str, tuple[Any, str]] = {
    "not an object": ([], "must be an object, not a list"),
    "not JSON": ({"const": object()}, "is not JSON"),
    "a wrong type": ({"type": "strng"}, "/type: must be one of"),
    "a wrong keyword": ({"minLength": -1}, "/minLength: must be at least 0"),
    "items of an older draft": ({"items": [{}]}, "/items: must be true or false or an object"),
    "remote": ({"$ref": "http://example.com/s"}, "/$ref: leads out of this schema"),
    "relative": ({"$ref": "other.json"}, "/$ref: leads out of this schema"),
    "a file": ({"items": {"$ref": "file:///etc/passwd"}}, "/items/$ref: leads out"),
    "no scheme": ({"$ref": "//example.com/s"}, "/$ref: leads out of this schema"),
    "dynamic": ({"$dynamicRef": "http://example.com/#a"}, "/$dynamicRef: leads out"),
    "by its own name": ({"$id": "http://a.example/", "$ref": "b"}, "/$ref: leads out"),
    "another base": ({"items": {"$id": "http://a.example/"}}, "/items/$id: only the whole schema"),
    "unused": ({"$defs": {"a": {"$ref": "http://example.com"}}}, "/$defs/a/$ref: leads out"),
    "in content": ({"contentSchema": {"$ref": "http://example.com"}}, "/contentSchema/$ref: leads"),
    "hidden": (
        {"$ref": "#/x-y", "x-y": {"$ref": "http://example.com"}},
        "/$ref: leads to no schema in this document",
    ),
    "missing": ({"$ref": "#/$defs/a"}, "/$ref: leads to no schema in this document"),
    "lookahead": ({"pattern": "(?=a)b"}, "/pattern: the pattern looks around or back"),
    "lookbehind": ({"pattern": "(?<!a)b"}, "/pattern: the pattern looks around or back"),
    "back reference": ({"pattern": r"(a)\1"}, "/pattern: the pattern looks around or back"),
    "a named one": ({"pattern": r"(?<n>a)\k<n>"}, "/pattern: the pattern looks around or back"),
    "not a pattern": ({"patternProperties": {"(": {}}}, "/patternProperties/(: the pattern is not"),
    "unrolled": (
        {"pattern": "((a{1,100}){1,100}){1,100}"},
        "/pattern: the pattern is wrong, or too",
    ),
    "long": ({"pattern": "a" * 1001}, "/pattern: the pattern has 1001 characters"),
    "many": (
        {"allOf": [{"pattern": f"^(a|b|c|d){{{n}}}\\p{{L}}$"} for n in range(1000)]},
        "/: the schema has 1000 different patterns, the limit is 100",
    ),
    "large": ({"description": "x" * 65_536}, "has 65554 bytes, the limit is 65536"),
    "deep": (nest(33), "the schema is nested more than 32 deep"),
    "as deep as can be": (nest(5000), "is not JSON"),
    "itself": ({"$ref": "#"}, "/: the schema leads back to itself"),
    "each other": (
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}},
        "the schema leads back to itself for the same value, without end",
    ),
    "everywhere at once": (
        {
            "$defs": {
                **{f"a{n}": {"$dynamicAnchor": "a"} for n in range(750)},
                **{f"r{n}": {"items": {"$dynamicRef": "#a"}} for n in range(750)},
            }
        },
        "its references lead on in 564000 ways, the limit is 100000",
    ),
    "doubling": (doubling(30), "one value could be looked at more than 2000 times"),
    "doubling by all": (doubling(30, "allOf"), "one value could be looked at more than 2000"),
    "many by value": (
        {"anyOf": [{"items": {"$ref": "#"}} for _ in range(9)]},
        "one value could be looked at more than 2000 times",
    ),
    "what is left over": (
        {
            "properties": {
                "a": json.loads(
                    '{"unevaluatedProperties": false, "allOf": [' * 12 + "{}" + "]}" * 12
                )
            }
        },
        "one value could be looked at more than 2000 times",
    ),
    "an enum of objects": (
        {"enum": [{"a": n} for n in range(101)]},
        "/enum: has 101 objects and arrays, the limit is 100",
    ),
    "thousands of wrong parts": ({"allOf": [1] * 30_000}, "/allOf/0: must be true or false or an"),
    "thousands of wrong names": ({"required": [1] * 30_000}, "/required/1: must be a string"),
    "lists of wrong names": (
        {"dependentRequired": {str(nth): [1] * 1000 for nth in range(30)}},
        "/dependentRequired/0/1: must be a string",
    ),
    "one wrong name of thousands": (
        {"required": [*(f"n{nth}" for nth in range(5000)), 1]},
        "/required: is not written as draft 2020-12 says",
    ),
    "laughter": (laughing(20), "defaults are too large, or lead to one another"),
    "an older draft": ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema: must be"),
    "an inner draft": (
        {"items": {"$schema": "http://example.com/mine"}},
        "/items/$schema: must be",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_refused_in_no_time(name: str) -> None:
    schema, expected = HOSTILE[name]
    schemas.compile({"$ref": "#/$defs/a", "$defs": {"a": {"pattern": "^a"}}})  # all is loaded

    with timed() as took:
        found = faults(schema)

    assert expected in "; ".join(map(str, found))
    assert took[0] < PATIENCE


def test_nothing_is_fetched_whatever_a_schema_says() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        for address in (
            f"http://127.0.0.1:{port}/s",
            f"http://localhost:{port}/#/a",
            f"//127.0.0.1:{port}/",
        ):
            for schema in (
                {"$ref": address},
                {"$dynamicRef": address},
                {"$schema": address},
                {"$id": address, "$ref": "s"},
                {"$ref": "#/x", "x": {"$ref": address}},
                {"items": {"$id": address, "$ref": "s"}},
            ):
                faults(schema)
        for schema in (
            {"$id": f"http://127.0.0.1:{port}/s"},
            {"const": {"$ref": f"http://127.0.0.1:{port}"}},
        ):
            schemas.compile(schema).faults({})

        with pytest.raises(BlockingIOError):  # nobody has called
            server.accept()


def test_defaults_along_a_chain_of_references_are_checked_in_no_time() -> None:
    chain = {
        f"d{nth}": {"default": 1, "anyOf": [{"items": {"$ref": f"#/$defs/d{nth + 1}"}}]}
        for nth in range(400)
    }

    with timed() as took:
        schemas.compile({"$ref": "#/$defs/d0", "$defs": {**chain, "d400": {}}})

    assert took[0] < 0.5


def test_every_fault_is_told_at_once() -> None:
    found = faults(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "objekt",
            "properties": {
                "a": {"$ref": "http://example.com"},
                "b/c": {"pattern": "(?=a)"},
                "d": {"minimum": "1"},
            },
            "dependencies": {},
        }
    )

    assert {fault.pointer for fault in found} == {
        "/$schema",
        "/type",
        "/properties/a/$ref",
        "/properties/b~1c/pattern",
        "/properties/d/minimum",
        "/dependencies",
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": ["object", "null"]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:example:a"},
    ],
)
def test_a_schema_of_payloads_describes_an_object(schema: dict[str, Any]) -> None:
    schemas.compile(schema, payload=True)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array"}, "/type"),
        ({"type": ["string", "null"]}, "/type"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "/$defs/a/type"),
        ({"allOf": [{}, {"type": "integer"}]}, "/allOf/1/type"),
    ],
)
def test_another_schema_is_none_of_payloads(schema: dict[str, Any], pointer: str) -> None:
    schemas.compile(schema)

    assert [fault.pointer for fault in faults(schema, payload=True)] == [pointer]


def test_ordinary_patterns_are_let_in() -> None:
    for pattern in (
        r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$",
        r"^\w{1,64}$",
        r"^\p{L}+$",
        r"^\S+@\S+\.\S+$",
        r"^\\\\1$",
        r"^(a+)+$",
    ):
        schemas.compile({"pattern": pattern})


def test_a_change_to_the_callers_copy_changes_nothing() -> None:
    mine: dict[str, Any] = {"type": "string"}
    compiled = schemas.compile(mine)
    mine["type"] = "integer"

    assert compiled.faults("a") == []
    assert schemas.compile(mine).faults("a") != []
