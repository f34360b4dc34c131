"""Templates keep types and miss nothing; filters compare and compute nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.definitions.definition import Definition
from fairlane.scheduler import filter as filters
from fairlane.scheduler import fits, template
from fairlane.scheduler.filter import Filter
from fairlane.scheduler.names import is_pattern, patterns_of
from fairlane.scheduler.template import FieldMissing, Template

EVENT = {
    "id": 7,
    "ratio": 1.5,
    "yes": True,
    "none": None,
    "text": "a {{event.id}} b",
    "list": [{"x": 1}, "two"],
    "folder": {"path": "/p", "a-b": 2},
}


def rendered(value: Any) -> Any:
    return Template({"v": value}).render({"event": EVENT, "tenant": {"slug": "acme"}})["v"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("{{event.id}}", 7),
        ("{{ event.id }}", 7),
        ("{{event.ratio}}", 1.5),
        ("{{event.yes}}", True),
        ("{{event.none}}", None),
        ("{{event.list}}", [{"x": 1}, "two"]),
        ("{{event.list.0.x}}", 1),
        ("{{event.folder}}", {"path": "/p", "a-b": 2}),
        ("{{event.folder.a-b}}", 2),
        ("{{event}}", EVENT),
        ("no. {{event.id}}", "no. 7"),
        ("{{event.id}}{{event.yes}}", "7true"),
        ("{{tenant.slug}}/{{event.folder.path}}", "acme//p"),
        ("{{event.text}}", "a {{event.id}} b"),  # what comes in is no template
        ("> {{event.text}}", "> a {{event.id}} b"),
        ("{plain} }} braces", "{plain} }} braces"),
        (["{{event.id}}", {"deep": "{{event.id}}"}], [7, {"deep": 7}]),
        (3, 3),
        (None, None),
    ],
)
def test_a_lone_placeholder_keeps_its_type_and_others_make_a_text(written: Any, value: Any) -> None:
    assert rendered(written) == value
    assert type(rendered(written)) is type(value)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("{{event.gone}}", "not there"),
        ("x{{event.gone}}", "not there"),
        ("{{event.folder.path.more}}", "not there"),
        ("{{event.list.2}}", "not there"),
        ("{{event.list.-1}}", "not there"),
        ("x{{event.none}}", "null"),
        ("x{{event.list}}", "a list"),
        ("x{{event.folder}}", "an object"),
        ("{{event.__class__}}", "not there"),
    ],
)
def test_what_is_missing_is_an_error(written: str, why: str) -> None:
    with pytest.raises(FieldMissing, match=why) as refused:
        rendered(["fine", written])
    assert refused.value.pointer == "/v/1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_value_goes_through_as_it_is(value: Any) -> None:
    found = Template({"v": "{{event.v}}"}).render({"event": {"v": value}})
    assert found == {"v": value}


@pytest.mark.parametrize(
    ("said", "fits_it"),
    [
        ({}, True),
        ({"id": 7}, True),
        ({"id": "7"}, False),
        ({"id": True}, False),
        ({"event.id": 7}, True),
        ({"yes": 1}, False),
        ({"yes": True, "id": 7}, True),
        ({"yes": True, "id": 8}, False),
        ({"id": {"gte": 7, "lt": 8}}, True),
        ({"id": {">": 7}}, False),
        ({"id": {">": "1"}}, False),
        ({"id": {"!=": 8}}, True),
        ({"text": {"gt": "A"}}, True),
        ({"folder.path": {"starts_with": "/"}}, True),
        ({"id": {"starts_with": "7"}}, False),
        ({"list": {"contains": "two"}}, True),
        ({"text": {"contains": "b"}}, True),
        ({"list.1": {"in": ["one", "two"]}}, True),
        ({"gone": {"exists": False}}, True),
        ({"none": {"exists": True}}, True),
        ({"none": None}, True),
        ({"gone": None}, False),
        ({"gone": {"gt": 0}}, False),
        ({"gone": {"ne": 1}}, True),
        ({"gone": {"not_in": [1]}}, True),
        ({"gone": {"contains": 1}}, False),
        ({"list": [{"x": 1}, "two"]}, True),
    ],
)
def test_filters_compare(said: dict[str, Any], fits_it: bool) -> None:
    assert filters.faults_of(said, "") == []
    assert Filter(said).fits(EVENT) is fits_it


def test_names_and_their_patterns() -> None:
    assert patterns_of("a.b.c") == ("a.b.c", "a.b.*", "a.*", "*")
    for good in ("a", "a.b", "a.*", "*", "A_1:x-y.z"):
        assert is_pattern(good), good
    for bad in ("", ".", "a.", ".a", "a.*.b", "*.a", "a*", "a b", "a..b", "ä", "a" * 201):
        assert not is_pattern(bad), bad


SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "text": {"type": "string", "maxLength": 3},
        "deep": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "given": {"type": "integer", "default": 1},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "when": {"type": ["string", "null"]},
    },
    "required": ["n", "given"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("written", "pointers"),
    [
        ({"n": "{{event.n}}"}, []),
        ({"n": "{{event.n}}", "text": "{{event.t}}", "when": "at {{event.t}}"}, []),
        ({"n": "no. {{event.n}}"}, ["/n"]),
        ({"n": "{{tenant.slug}}"}, ["/n"]),
        ({"text": "{{event.t}}"}, ["/n"]),
        ({"n": "{{event.n}}", "text": "long"}, ["/text"]),
        ({"n": "{{event.n}}", "other": 1}, ["/other"]),
        ({"n": "{{event.n}}", "deep": {"x": "{{event.n}}"}}, ["/deep/n"]),
        ({"n": "{{event.n}}", "deep": {"n": "x {{event.n}}"}}, ["/deep/n"]),
        ({"n": "{{event.n}}", "either": "x {{event.n}}"}, []),  # alternatives: told later
        ({"n": 1}, []),
        ({"n": "one"}, ["/n"]),
    ],
)
def test_what_can_be_told_when_it_is_saved_is_told(
    written: dict[str, Any], pointers: list[str]
) -> None:
    definition = Definition(key="k", arg_schema=SCHEMA)
    assert [each.pointer for each in fits.faults_of(written, definition, "")] == pointers


def test_no_expression_is_computed() -> None:
    for text in ("{{event.n + 1}}", "{{ 1 }}", "{{event.n | upper}}", "{{event['n']}}", "{{}}"):
        assert template.faults_of({"v": text}, "event", ""), text
