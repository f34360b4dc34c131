"""What is told of a value that does not fit: everything, in bounds, and nothing of the value."""

import time
from typing import Any

import pytest

from fairlane import schemas
from fairlane.definitions.definition import Definition
from fairlane.errors import PayloadInvalid

ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["order", "items"],
    "properties": {
        "order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{6}$"},
        "token": {"type": "string", "writeOnly": True, "minLength": 20},
        "password": {"type": "string", "format": "password", "pattern": "^[0-9]+$"},
        "level": {"enum": ["low", "high"], "default": "low"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["sku"],
                "properties": {"sku": {"type": "string"}, "n": {"type": "integer", "default": 1}},
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


def refused(payload: Any, schema: dict[str, Any] = ORDER) -> PayloadInvalid:
    with pytest.raises(PayloadInvalid) as error:
        schemas.accept("orders.ship", schema, payload)
    return error.value


def test_a_payload_that_fits_comes_back_complete() -> None:
    given = {"order": "AB-123456", "items": [{"sku": "a"}]}

    assert schemas.accept("orders.ship", ORDER, given) == {
        "order": "AB-123456",
        "items": [{"sku": "a", "n": 1}],
        "level": "low",
    }
    assert given == {"order": "AB-123456", "items": [{"sku": "a"}]}


def test_every_fault_has_its_place_and_the_definition_is_named() -> None:
    error = refused({"order": 7, "items": [{"sku": "a"}, {"n": "1", "x": 1}], "level": "mid"})

    assert str(error).startswith('the payload of "orders.ship" does not fit: /order: must be a str')
    assert {(fault.pointer, fault.message) for fault in error.faults} == {
        ("/order", "must be a string"),
        ("/items/1/sku", "is missing"),
        ("/items/1/n", "must be a whole number"),
        ("/items/1/x", "no such property"),
        ("/level", 'must be one of "low","high"'),
    }


def test_a_value_is_never_repeated() -> None:
    secret = "hunter2-hunter2"
    for payload in (
        {"order": secret, "items": secret, "token": secret, "password": secret, "level": secret},
        {"order": [secret], "items": [{"sku": {"a": secret}}, secret], "token": {"x": secret}},
    ):
        error = refused(payload)
        assert secret not in str(error)
        assert secret not in repr(error.faults)
        assert secret not in repr(error.__cause__)
        assert secret not in repr(error.__context__)


def test_of_many_faults_fifty_are_told_and_the_others_counted() -> None:
    faults = refused({"order": "AB-123456", "items": [1] * 70}).faults

    assert len(faults) == 51
    assert str(faults[-1]) == "/: and 20 more faults"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"type": "integer"}}, ["x"] * 60_000),
        ({"items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, ["x"] * 60_000),
        ({"properties": {"a": {"pattern": "1[01]{700}x"}}}, {"a": "01" * 125_000}),
        ({"items": {"pattern": "1[01]{700}x"}}, ["01" * 500] * 250),
        (
            {"items": {"anyOf": [*({"pattern": f"1[01]{{700}}{end}"} for end in "abcdefgh"), {}]}},
            ["01" * 500] * 250,
        ),
        ({"items": {"enum": [{"a": n} for n in range(100)]}}, [{"a": 101}] * 25_000),
    ],
    ids=[
        "wrong items",
        "wrong alternatives",
        "a long string",
        "many strings",
        "many patterns",
        "objects",
    ],
)
def test_the_largest_payload_is_answered_in_bounded_time(schema: Any, value: Any) -> None:
    compiled = schemas.compile(schema)

    began = time.process_time()
    faults = compiled.faults(value)
    took = time.process_time() - began

    assert 0 < len(faults) <= 51
    assert took < 2


def test_a_large_payload_is_told_of_its_few_faults_each_in_its_place() -> None:
    items: list[Any] = [{"sku": f"item {nth}", "n": nth} for nth in range(7000)]
    items[17] = {"n": "one"}
    items[6999] = {"sku": "a", "x": 1}

    faults = refused({"order": "AB-123456", "items": items, "color": "red"}).faults

    assert {str(fault) for fault in faults} == {
        "/color: no such property",
        "/items/17/sku: is missing",
        "/items/17/n: must be a whole number",
        "/items/6999/x: no such property",
    }


def test_where_there_is_too_much_to_find_it_says_so() -> None:
    faults = refused({"order": "AB-123456", "items": [{}] * 60_000}).faults

    assert [str(fault) for fault in faults[:2]] == [
        "/items/0/sku: is missing",
        "/items/1/sku: is missing",
    ]
    assert len(faults) == 51
    assert str(faults[-1]) == "/: there may be more; it is too large to list"


@pytest.mark.parametrize("depth", [102, 500, 1200, 20_000])
@pytest.mark.parametrize("schema", [{}, {"properties": {"a": {"default": 1}, "b": {}}}])
def test_a_payload_too_deep_is_refused_whatever_the_schema(
    schema: dict[str, Any], depth: int
) -> None:
    payload: Any = {}
    for _ in range(depth):
        payload = {"b": payload}

    assert "nested more than 100 deep" in str(refused(payload, schema))


def test_a_payload_too_deep_for_the_defaults_is_refused_too() -> None:
    payload: Any = {}
    for _ in range(1200):
        payload = {"b": payload}
    schema = {"properties": {"a": {"default": 1}, "b": {"$ref": "#"}}}

    assert "too deep" in str(refused(payload, schema))


def test_a_schema_that_multiplies_with_depth_is_followed_only_so_far() -> None:
    branch = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    compiled = schemas.compile({"anyOf": [{"type": "integer"}, branch, branch]})

    def nested(depth: int) -> Any:
        value: Any = "x"
        for _ in range(depth):
            value = {"a": value}
        return value

    began = time.process_time()
    assert len(compiled.faults(nested(6))) == 1
    assert "is nested deeper than its schema can be followed" in str(compiled.faults(nested(60))[0])
    assert time.process_time() - began < 1


def test_a_long_name_is_cut() -> None:
    (fault,) = refused({"order": "AB-123456", "items": [], "x" * 9000: 1}).faults

    assert len(fault.pointer) < 310


def test_a_result_is_held_to_its_schema_where_there_is_one() -> None:
    free = Definition(key="a")
    held = Definition(key="a", result_schema={"type": "object", "required": ["url"]})

    assert schemas.check_result(free, 7) == []
    assert schemas.check_result(held, {"url": "x"}) == []
    assert [str(fault) for fault in schemas.check_result(held, {})] == ["/url: is missing"]
    assert [str(fault) for fault in schemas.check_result(held, None)] == ["/: must be an object"]
