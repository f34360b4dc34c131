"""What draft 2020-12 says, keyword by keyword, as a payload's author meets it."""

from typing import Any

import pytest

from fairlane import schemas

TREE = {
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}

# A schema, a value that fits it, and one that does not with the faults it has.
TABLE: list[tuple[dict[str, Any], Any, Any, list[str]]] = [
    ({"type": "string"}, "a", 1, ["/: must be a string"]),
    ({"type": "integer"}, 1.0, 1.5, ["/: must be a whole number"]),
    ({"type": "integer"}, 10**40, True, ["/: must be a whole number"]),
    ({"type": ["number", "null"]}, None, "1", ["/: must be null or a number"]),
    ({"enum": ["a", 1]}, 1.0, "b", ['/: must be one of "a",1']),
    ({"const": {"a": 1}}, {"a": 1.0}, {"a": 2}, ['/: must be {"a":1}']),
    ({"multipleOf": 0.01}, 19.99, 0.075, ["/: must be a multiple of 0.01"]),
    ({"minimum": 3}, 3, 2, ["/: must be at least 3"]),
    ({"maximum": 3}, 3, 4, ["/: must be at most 3"]),
    ({"exclusiveMinimum": 3}, 3.1, 3, ["/: must be more than 3"]),
    ({"exclusiveMaximum": 3}, 2.9, 3, ["/: must be less than 3"]),
    ({"minLength": 2}, "😀😀", "😀", ["/: must have at least 2 characters"]),
    ({"maxLength": 1}, "😀", "😀😀", ["/: must have at most 1 characters"]),
    ({"pattern": "b+$"}, "abb", "ba", ['/: must match "b+$"']),
    ({"minItems": 1}, [0], [], ["/: must have at least 1 items"]),
    ({"maxItems": 1}, [0], [0, 0], ["/: must have at most 1 items"]),
    ({"uniqueItems": True}, [1, "1"], [1, 1.0], ["/: has the same item twice"]),
    ({"items": {"type": "integer"}}, [1], [1, "a", "b"], ["/1", "/2"]),
    (
        {"prefixItems": [{"type": "string"}], "items": False},
        ["a"],
        ["a", 1],
        ["/1: is not allowed"],
    ),
    ({"contains": {"const": 3}}, [1, 3], [1], ["/: has too few or too many"]),
    ({"contains": {"const": 3}, "minContains": 2}, [3, 3], [3], ["/: has too few or too many"]),
    ({"contains": {"const": 3}, "maxContains": 1}, [3], [3, 3], ["/: has too few or too many"]),
    ({"contains": {"const": 3}, "minContains": 0}, [], None, []),
    ({"prefixItems": [True], "unevaluatedItems": False}, [1], [1, 2, 3], ["/: has 2 items more"]),
    ({"required": ["a", "b"]}, {"a": 1, "b": 1}, {}, ["/a: is missing", "/b: is missing"]),
    ({"properties": {"a/b": {"type": "null"}}}, {}, {"a/b": 1}, ["/a~1b: must be null"]),
    ({"patternProperties": {"^n": {"type": "null"}}}, {"a": 1}, {"n": 1}, ["/n: must be null"]),
    ({"additionalProperties": False}, {}, {"x": 1, "y": 2}, ["/x: no such", "/y: no such"]),
    (
        {"properties": {"a": True}, "unevaluatedProperties": False},
        {"a": 1},
        {"a": 1, "b": 1},
        ["/b: no such property"],
    ),
    (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        {"a": 1},
        {"b": 1},
        ["/b: no such property"],
    ),
    ({"minProperties": 1}, {"a": 1}, {}, ["/: must have at least 1 properties"]),
    ({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 1}, ["/: must have at most 1 properties"]),
    ({"propertyNames": {"pattern": "^a"}}, {"a": 1}, {"b": 1}, ['/b: its name must match "^a"']),
    ({"dependentRequired": {"a": ["b"]}}, {"b": 1}, {"a": 1}, ["/b: is missing"]),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, {}, {"a": 1}, ["/b: is missing"]),
    (
        {"allOf": [{"minimum": 1}, {"multipleOf": 2}]},
        2,
        -1,
        ["/: must be at least", "/: must be a"],
    ),
    (
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        None,
        "x",
        ["/: must be a whole number or null"],
    ),
    (
        {"anyOf": [{"type": "null"}, {"type": "object", "required": ["a"]}]},
        {"a": 1},
        {},
        ["/a: is missing"],
    ),
    ({"anyOf": [{"minimum": 5}, {"multipleOf": 7}]}, -7, 1, ["/: fits none of the 2 forms"]),
    ({"oneOf": [{"minimum": 5}, {"multipleOf": 7}]}, -7, 7, ["/: fits more than one of the forms"]),
    ({"not": {"type": "string"}}, 1, "a", ["/: has a form that is not allowed"]),
    (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
        {"c": 1},
        {"a": 1},
        ["/b: is missing"],
    ),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, None, 1, ["/: must be null"]),
    (
        {"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "null"}}},
        None,
        1,
        ["/: must be null"],
    ),
    (
        {"properties": {"next": {"$ref": "#"}}, "type": "object"},
        {"next": {"next": {}}},
        {"next": {"next": 1}},
        ["/next/next: must be an object"],
    ),
    (
        TREE,
        {"children": [{}]},
        {"children": [{"children": 1}]},
        ["/children/0/children: must be an"],
    ),
    # Beside $ref other keywords hold, as they do since 2019-09.
    (
        {"$ref": "#/$defs/n", "maximum": 3, "$defs": {"n": {"minimum": 1}}},
        2,
        4,
        ["/: must be at most 3"],
    ),
    # What says something to readers only.
    ({"contentEncoding": "base64", "contentMediaType": "application/json"}, "%", None, []),
    ({"format": "one-of-our-own"}, "x", None, []),
    ({"title": "t", "examples": [1], "deprecated": True, "readOnly": True}, 1, None, []),
    # Data that looks like a reference is data.
    (
        {"const": {"$ref": "http://example.com"}},
        {"$ref": "http://example.com"},
        1,
        ["/: must be {"],
    ),
]

FORMATS = {
    "date-time": ("2030-01-31T08:00:00Z", "2030-02-31T08:00:00Z"),
    "date": ("2030-01-31", "2030-1-31"),
    "time": ("08:00:00Z", "25:00:00Z"),
    "duration": ("P3DT4H", "3 days"),
    "email": ("a@example.com", "a@"),
    "hostname": ("a.example.com", "-a-.example"),
    "ipv4": ("192.0.2.1", "192.0.2.256"),
    "ipv6": ("2001:db8::1", "2001:db8:::1"),
    "uri": ("https://example.com/a", "//nowhere"),
    "uri-reference": ("/a?b#c", "\\a"),
    "uuid": ("2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2eb8aa08"),
    "json-pointer": ("/a~1b", "a"),
    "regex": ("^a+$", "("),
}


@pytest.mark.parametrize(("schema", "right", "wrong", "faults"), TABLE)
def test_a_keyword_means_what_the_draft_says(
    schema: dict[str, Any], right: Any, wrong: Any, faults: list[str]
) -> None:
    compiled = schemas.compile(schema)

    assert compiled.faults(right) == []
    found = [str(fault) for fault in compiled.faults(wrong)]
    assert len(found) == len(faults)
    for each, expected in zip(found, faults, strict=True):
        assert each.startswith(expected)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_checked(name: str) -> None:
    right, wrong = FORMATS[name]
    compiled = schemas.compile({"format": name})

    assert compiled.faults(right) == []
    assert [str(fault) for fault in compiled.faults(wrong)] == [
        f'/: must be in the format "{name}"'
    ]
    assert compiled.faults(7) == []  # a format speaks of strings alone
