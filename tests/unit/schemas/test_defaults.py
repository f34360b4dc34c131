"""Defaults are written where they hold for certain, once, and only if they fit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import schemas
from fairlane.errors import DefinitionInvalid, PayloadInvalid

A = {"properties": {"a": {"default": 1}}}

TABLE: list[tuple[dict[str, Any], Any, Any]] = [
    (A, {}, {"a": 1}),
    (A, {"a": None}, {"a": None}),
    (A, {"b": 2}, {"a": 1, "b": 2}),
    (A, [], []),
    ({"properties": {"a": {"default": None}}}, {}, {"a": None}),
    ({"properties": {"o": A}}, {}, {}),
    ({"properties": {"o": A}}, {"o": {}}, {"o": {"a": 1}}),
    ({"properties": {"o": {**A, "default": {}}}}, {}, {"o": {"a": 1}}),
    ({"items": A}, [{}, 7, {"a": 2}], [{"a": 1}, 7, {"a": 2}]),
    ({"prefixItems": [A, {}], "items": A}, [{}, {}, {}], [{"a": 1}, {}, {"a": 1}]),
    ({"prefixItems": [A, A]}, [{}], [{"a": 1}]),
    ({"$ref": "#/$defs/x", "$defs": {"x": A}}, {}, {"a": 1}),
    ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"default": 3}}}, {}, {"a": 3}),
    # Beside a reference the nearer one holds.
    (
        {"properties": {"a": {"$ref": "#/$defs/x", "default": 4}}, "$defs": {"x": {"default": 3}}},
        {},
        {"a": 4},
    ),
    ({"allOf": [A, {"properties": {"b": {"default": 2}}}]}, {}, {"a": 1, "b": 2}),
    ({"properties": {"a": {"allOf": [{"default": 5}]}}}, {}, {"a": 5}),
    (
        {"properties": {"next": {"$ref": "#"}, **A["properties"]}},
        {"next": {}},
        {"next": {"a": 1}, "a": 1},
    ),
    # What may hold or not.
    ({"anyOf": [A, {}]}, {}, {}),
    ({"oneOf": [A]}, {}, {}),
    ({"not": {"not": A}}, {}, {}),
    ({"if": A, "then": A, "else": A}, {}, {}),
    ({"dependentSchemas": {"b": A}}, {"b": 1}, {"b": 1}),
    ({"additionalProperties": A}, {"b": {}}, {"b": {}}),
    ({"patternProperties": {"b": A}}, {"b": {}}, {"b": {}}),
    ({"default": {"a": 1}}, {}, {}),
]


@pytest.mark.parametrize(("schema", "value", "complete"), TABLE)
def test_defaults_are_written_where_they_hold_for_certain(
    schema: dict[str, Any], value: Any, complete: Any
) -> None:
    compiled = schemas.compile(schema)
    before = repr(value)

    assert compiled.complete(value) == complete
    assert compiled.complete(complete) == complete
    assert repr(value) == before


def test_one_payload_cannot_spoil_the_default_of_the_next() -> None:
    compiled = schemas.compile({"properties": {"a": {"default": [{"b": []}]}}})

    compiled.complete({})["a"][0]["b"].append(1)

    assert compiled.complete({}) == {"a": [{"b": []}]}


@pytest.mark.parametrize(
    ("schema", "pointers"),
    [
        ({"properties": {"a": {"type": "string", "default": 5}}}, ["/properties/a/default"]),
        ({"properties": {"a": {"format": "date", "default": "soon"}}}, ["/properties/a/default"]),
        (
            {"$defs": {"x": {"$ref": "#/$defs/y", "default": 1}, "y": {"minimum": 2}}},
            ["/$defs/x/default"],
        ),
        ({"anyOf": [{"type": "null", "default": 0}]}, ["/anyOf/0/default"]),
        (
            {
                "properties": {
                    "a": {"required": ["b"], "default": {}},
                    "c": {"enum": [1], "default": 2},
                }
            },
            ["/properties/a/default", "/properties/c/default"],
        ),
    ],
)
def test_a_default_that_does_not_fit_its_schema_is_refused(
    schema: dict[str, Any], pointers: list[str]
) -> None:
    with pytest.raises(DefinitionInvalid) as refused:
        schemas.compile(schema)

    assert [fault.pointer for fault in refused.value.faults] == pointers


def test_a_default_is_judged_with_the_defaults_in_it() -> None:
    inner = {"required": ["b"], "properties": {"b": {"default": 1}}, "default": {}}

    assert schemas.accept("k", {"properties": {"a": inner}}, {}) == {"a": {"b": 1}}


def test_defaults_that_would_fill_the_memory_are_refused() -> None:
    schema = {"properties": {"a": {"items": {"properties": {"b": {"default": "x" * 20_000}}}}}}

    with pytest.raises(PayloadInvalid, match="with its defaults it is too large or too deep"):
        schemas.accept("k", schema, {"a": [{}] * 200})


# Schemas of a kind that people write, and payloads for them.

_LEAVES = st.sampled_from(
    [
        {"type": "integer", "default": 3},
        {"type": "string", "default": ""},
        {"type": ["boolean", "null"], "default": None},
        {"type": "number"},
        {},
    ]
)
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda each: {"type": "array", "items": each}, inner),
        st.builds(
            lambda each: {"type": "object", "properties": each},
            st.dictionaries(st.sampled_from("abc"), inner),
        ),
        st.builds(
            lambda each: {"type": "object", "properties": each, "default": {}},
            st.dictionaries(st.sampled_from("abc"), _LEAVES),
        ),
        st.builds(lambda each: {"allOf": each}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda each: {"anyOf": [each, True]}, inner),
    ),
    max_leaves=12,
)
_PAYLOADS = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
        max_leaves=8,
    ),
)


@given(st.dictionaries(st.sampled_from("abc"), _SCHEMAS), _PAYLOADS)
def test_completing_twice_is_completing_once(properties: Any, payload: Any) -> None:
    compiled = schemas.compile({"type": "object", "properties": properties})

    once = compiled.complete(payload)

    assert compiled.complete(once) == once


@given(st.dictionaries(st.sampled_from("abc"), _SCHEMAS), _PAYLOADS)
def test_what_was_accepted_is_accepted_again_as_it_is(properties: Any, payload: Any) -> None:
    schema = {"type": "object", "properties": properties}
    compiled = schemas.compile(schema)
    completed = compiled.complete(payload)
    if compiled.faults(completed):
        with pytest.raises(PayloadInvalid):
            schemas.accept("k", schema, payload)
    else:
        assert schemas.accept("k", schema, payload) == completed
        assert schemas.accept("k", schema, completed) == completed


@given(st.dictionaries(st.sampled_from("abc"), _LEAVES), _PAYLOADS)
def test_a_valid_payload_stays_valid_when_it_is_completed(properties: Any, payload: Any) -> None:
    compiled = schemas.compile({"type": "object", "properties": properties})

    if not compiled.faults(payload):
        assert compiled.faults(compiled.complete(payload)) == []
