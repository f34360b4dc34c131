"""Payloads, what is secret in them, and what may be shown of them; for Python and for SQL."""

import json
from typing import Any

from hypothesis import strategies as st

from fairlane.core.json import pointer_to
from fairlane.redact import MARKER

CANARY = "canary-7f3a9c"

# Name, schema, payload, what is shown.
SECRET = {"type": "string", "writeOnly": True}

SCHEMAS: list[tuple[str, dict[str, Any], Any, Any]] = [
    (
        "writeOnly",
        {"properties": {"a": SECRET, "b": {}}},
        {"a": CANARY, "b": 1},
        {"a": MARKER, "b": 1},
    ),
    (
        "format password",
        {"properties": {"a": {"format": "password"}, "b": {"format": "email"}}},
        {"a": CANARY, "b": "x"},
        {"a": MARKER, "b": "x"},
    ),
    (
        "writeOnly that is false, or only the word",
        {"properties": {"a": {"writeOnly": False}, "writeOnly": {"default": True}}},
        {"a": "x", "writeOnly": True},
        {"a": "x", "writeOnly": True},
    ),
    (
        "items",
        {"properties": {"a": {"items": SECRET}}},
        {"a": [CANARY, CANARY]},
        {"a": [MARKER, MARKER]},
    ),
    (
        "prefixItems, and the items behind them",
        {"properties": {"a": {"prefixItems": [{}, SECRET], "items": {"items": SECRET}}}},
        {"a": ["x", CANARY, [CANARY], "y"]},
        {"a": ["x", MARKER, [MARKER], "y"]},
    ),
    (
        "items as a list, as they once were",
        {"properties": {"a": {"items": [{}, SECRET]}, "b": {}}},
        {"a": ["x", CANARY], "b": ["y"]},
        {"a": [MARKER, MARKER], "b": ["y"]},
    ),
    (
        "deep inside",
        {"properties": {"a": {"properties": {"b": {"items": {"properties": {"c": SECRET}}}}}}},
        {"a": {"b": [{"c": CANARY, "d": 1}]}},
        {"a": {"b": [{"c": MARKER, "d": 1}]}},
    ),
    (
        "a local $ref",
        {"$defs": {"s/t": SECRET}, "properties": {"a": {"$ref": "#/$defs/s~1t"}}},
        {"a": CANARY},
        {"a": MARKER},
    ),
    (
        "a $ref with an escape",
        {"$defs": {"S[t]": SECRET}, "properties": {"a": {"$ref": "#/$defs/S%5Bt%5D"}}},
        {"a": CANARY},
        {"a": MARKER},
    ),
    (
        "an anchor, and an $id",
        {
            "$defs": {"x": {"$anchor": "s", **SECRET}, "y": {"$id": "urn:y", **SECRET}},
            "properties": {"a": {"$ref": "#s"}, "b": {"$ref": "urn:y"}},
        },
        {"a": CANARY, "b": CANARY},
        {"a": MARKER, "b": MARKER},
    ),
    (
        "a $ref inside a resource of its own",
        {
            "$defs": {"s": {}, "x": {"$id": "urn:x", "$defs": {"s": SECRET}, "$ref": "#/$defs/s"}},
            "properties": {"a": {"$ref": "urn:x"}},
        },
        {"a": CANARY},
        {"a": MARKER},
    ),
    (
        "a schema that comes back to itself",
        {"properties": {"token": SECRET, "next": {"$ref": "#"}, "n": {}}},
        {"n": 1, "next": {"token": CANARY, "next": {"next": {"next": {"token": CANARY, "n": 2}}}}},
        {"n": 1, "next": {"token": MARKER, "next": {"next": {"next": {"token": MARKER, "n": 2}}}}},
    ),
    (
        "allOf, anyOf, oneOf, if and then",
        {
            "allOf": [{"properties": {"a": SECRET}}],
            "anyOf": [{"properties": {"b": SECRET}}],
            "oneOf": [{"properties": {"c": {"oneOf": [SECRET, {"type": "null"}]}}}],
            "if": {"required": ["d"]},
            "then": {"properties": {"d": SECRET}},
        },
        dict.fromkeys("abcd", CANARY) | {"e": 1},
        dict.fromkeys("abcd", MARKER) | {"e": 1},
    ),
    (
        "additionalProperties",
        {"properties": {"a": {}, "b/c": {}}, "additionalProperties": SECRET},
        {"a": 1, "b/c": 2, "x": CANARY, "y": CANARY},
        {"a": 1, "b/c": 2, "x": MARKER, "y": MARKER},
    ),
    (
        "patternProperties",
        {"patternProperties": {"^x-": SECRET, "_(key|token)$": SECRET, "^.*pw$": SECRET}},
        {"x-a": CANARY, "my_token": CANARY, "dbpw": CANARY, "ax-": 1, "token_x": 2, "pwd": 3},
        {"x-a": MARKER, "my_token": MARKER, "dbpw": MARKER, "ax-": 1, "token_x": 2, "pwd": 3},
    ),
    (
        "a pattern that is not plain stands for every member",
        {"properties": {"a": {"patternProperties": {"^(?:s|x){1,3}$": SECRET}}, "b": {}}},
        {"a": {"s": CANARY, "t": 1}, "b": 2},
        {"a": {"s": MARKER, "t": MARKER}, "b": 2},
    ),
    ("all of it", {"writeOnly": True}, {"a": CANARY, "b": [CANARY]}, {"a": MARKER, "b": MARKER}),
    ("nothing", {"type": "object", "required": ["a"]}, {"a": 1}, {"a": 1}),
    ("words that are no schema", {"properties": {"a": True}, "items": 3}, {"a": 1}, {"a": 1}),
]

# Path, payload, what is shown.
PATHS: list[tuple[str, Any, Any]] = [
    ("/a", {"a": 1, "b": 2}, {"a": MARKER, "b": 2}),
    ("a", {"a": 1, "b": 2}, {"a": MARKER, "b": 2}),
    ("/a/b", {"a": {"b": {"c": 1}}}, {"a": {"b": MARKER}}),
    ("/a~1b/c~0d", {"a/b": {"c~d": 1}}, {"a/b": {"c~d": MARKER}}),
    ("/a/1", {"a": [1, 2, 3]}, {"a": [1, MARKER, 3]}),
    ("/a/1", {"a": {"1": 2}}, {"a": {"1": MARKER}}),
    ("/a/-1", {"a": [1, 2]}, {"a": [1, 2]}),
    ("/a/01", {"a": [1, 2]}, {"a": [1, 2]}),
    ("/a/*/b", {"a": [{"b": 1, "n": 2}, 3]}, {"a": [{"b": MARKER, "n": 2}, 3]}),
    ("/*/x", {"a": {"x": 1}, "b": {"x": 2, "y": 3}},
     {"a": {"x": MARKER}, "b": {"x": MARKER, "y": 3}}),
    ("/**/x", {"x": 1, "a": [{"x": 2}], "y": 3}, {"x": MARKER, "a": [{"x": MARKER}], "y": 3}),
    ("", {"a": 1, "b": {"c": 2}}, {"a": MARKER, "b": MARKER}),
    ("/", {"": 1, "a": 2}, {"": MARKER, "a": 2}),
    ("/not/there", {"a": 1, "not": 2}, {"a": 1, "not": 2}),
    ("/a", {"a": None}, {"a": MARKER}),
]  # fmt: skip

LETTERS = st.text("abcxyz/~*0-", min_size=1, max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc \"'\\\n", max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(LETTERS, inside, max_size=3),
    max_leaves=10,
)
PAYLOADS = st.dictionaries(LETTERS, JSON, max_size=4)


@st.composite
def planted(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], str]:
    """A payload, the same with a secret planted somewhere, and where that is."""
    payload = draw(PAYLOADS)
    secret = json.loads(json.dumps(payload))
    place: Any = secret
    pointer = ""
    for _ in range(draw(st.integers(0, 3))):
        inner = [
            (key, value)
            for key, value in (place.items() if isinstance(place, dict) else enumerate(place))
            if isinstance(value, dict | list) and value
        ]
        if not inner:
            break
        key, place = draw(st.sampled_from(inner))
        pointer = pointer_to(pointer, key)
    name: Any = draw(LETTERS if isinstance(place, dict) else st.integers(0, len(place) - 1))
    place[name] = CANARY
    return payload, secret, pointer_to(pointer, name)
