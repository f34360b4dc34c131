"""Forms of schemas and schedules in words: what needs no server."""

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fairlane.web.forms.inputs import all_of, inputs_of
from fairlane.web.forms.reading import Reader, json_of
from fairlane.web.schedules import in_words
from fairlane.web.views.progress import Items
from web.work import REPORT

UTC = ZoneInfo("UTC")


def read(schema: dict[str, Any], typed: dict[str, str]) -> tuple[Any, list[str]]:
    reader = Reader(schema, typed, ZoneInfo("Europe/Berlin"))
    return reader.payload(), [str(fault) for fault in reader.faults]


@pytest.mark.parametrize(
    "payload",
    [
        {"report_id": 1, "format": "csv", "period": {"from": "2026-01-01", "days": 2}},
        {"report_id": "[redacted]", "title": "two\nlines", "period": {"odd": [1, {"a": None}]}},
        {"regions": ["a", " b"], "draft": True, "notify": False, "matrix": [[1]], "share": 1.5},
        {"period": "no object", "format": "none of them", "due": None, "more": {"x": 1}},
        {"regions": [], "title": "", "token": "[redacted]"},
    ],
)
def test_a_payload_comes_back_from_its_form_as_it_was(payload: dict[str, Any]) -> None:
    """Whether or not it fits the schema; only an empty text or list is as if it were not there."""
    inputs = inputs_of(REPORT, payload)
    typed = {each.name: each.text for each in all_of(inputs) if each.kind != "object"}
    found, faults = read(REPORT, typed)
    assert faults == []
    left = {name: value for name, value in payload.items() if value not in ("", [])}
    if "period" not in payload:
        left["period"] = {}  # needed: what is missing in it is told inside
    assert found == left


def test_every_fault_of_what_was_typed_has_its_pointer() -> None:
    typed = {"p:/report_id": "1.5", "p:/share": "much", "j:/matrix": "[", "j:/*": "[1]"}
    _, faults = read(REPORT, typed)
    assert [fault.split(":")[0] for fault in faults] == ["/report_id", "/share", "/matrix", "/*"]
    inputs = inputs_of(REPORT, None, typed=typed, faults={"/matrix/0/1": ["is wrong"]})
    (matrix,) = [each for each in inputs if each.pointer == "/matrix"]
    assert matrix.text == "["
    assert list(matrix.faults) == ["/0/1: is wrong"], "at the nearest field, with the rest"


def test_an_object_that_may_be_left_out_is_not_brought_by_its_defaults() -> None:
    inner = {
        "type": "object",
        "required": ["to"],
        "properties": {"to": {"type": "string"}, "loud": {"type": "boolean", "default": True}},
    }
    for required, expected in (([], {}), (["mail"], {"mail": {"loud": True}})):
        schema = {"type": "object", "properties": {"mail": inner}, "required": required}
        typed = {each.name: each.text for each in all_of(inputs_of(schema))}
        assert read(schema, typed)[0] == expected


def test_references_and_what_may_be_null_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {
            "size": {"$ref": "#/$defs/Size"},
            "at": {"type": ["string", "null"], "format": "date-time"},
            "again": {"$ref": "#"},
            "lost": {"$ref": "https://elsewhere.example/x"},
        },
        "$defs": {"Size": {"enum": ["s", "m"], "description": "How large"}},
    }
    kinds = {each.label: each.kind for each in inputs_of(schema)}
    assert kinds == {"size": "choice", "at": "moment", "again": "object", "lost": "json"}
    payload, _ = read(schema, {"p:/size": '"m"', "p:/at": "2026-07-01T09:00"})
    assert payload == {"size": "m", "at": "2026-07-01T09:00:00+02:00"}


def test_what_json_does_not_have_is_refused_with_its_place() -> None:
    assert json_of('{"a": NaN}')[1] == "this is not JSON: NaN is no value of JSON"
    assert json_of('{"a": 1, "a": 2}')[1] == 'this is not JSON: "a" stands there twice; say it once'
    assert "line 2, column 1" in str(json_of("{\n")[1])
    assert "nested too deep" in str(json_of("[" * 100_000)[1])


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("*/15 * * * *", "every 15 minutes"),
        ("*/45 * * * *", "minute */45"),
        ("0 2 * * *", "every day at 02:00"),
        ("@hourly", "every hour"),
        ("30 9 * * 1-5", "at 09:30, Monday to Friday"),
        ("0 9,17 * * MON,FRI", "at 09:00 and 17:00, on Monday and Friday"),
        ("*/5 9-17 * * *", "every 5 minutes, between 09:00 and 17:59"),
        ("0 0 1 * *", "at 00:00, on the 1st of each month"),
        ("0 0 13 * 5", "minute 0, hour 0, day 13, weekday 5"),
        ("0 3 22 6-8 *", "at 03:00, on the 22nd of June to August"),
    ],
)
def test_a_schedule_is_told_in_words_or_field_by_field(expression: str, words: str) -> None:
    assert in_words(expression) == words


def test_items_are_only_told_where_the_job_speaks_of_them_so() -> None:
    for said in (None, {"items": 7}, {"items": {"counts": None}}, {"items": ["a"]}):
        assert Items.of({"progress": said}) is None
    counts = {"in_progress": 1, "completed": 3, "failed": 2}
    found = Items.of(
        {"progress": json.loads(json.dumps({"items": {"total": 6, "counts": counts}}))}
    )
    assert found is not None
    assert found.text == "3 of 6 · 2 failed · 1 in progress"
