"""JSON as jsonb takes it: what passes the check is stored and comes back the same."""

import enum
import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import tuple_row

from fairlane.core import json
from fairlane.errors import PayloadInvalid
from support.cluster import Cluster

texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
numbers = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="session")
def stored(cluster: Cluster) -> Iterator["psycopg.Connection[Any]"]:
    """A session to have values stored and read back."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        yield connection


def same(one: Any, other: Any) -> bool:
    """jsonb keeps numbers as decimals: 1e22 comes back as a whole number, and is the same."""
    match one, other:
        case bool() | None | str(), _:
            return one is other or (isinstance(one, str) and one == other)
        case int() | float(), bool():
            return False
        case float(), int() | float():
            return one == float(other)
        case int(), int():
            return one == other
        case dict(), dict():
            return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
        case list(), list():
            return len(one) == len(other) and all(map(same, one, other))
        case _:
            return False


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=values)
def test_what_passes_comes_back_from_the_database_the_same(
    stored: "psycopg.Connection[Any]", value: Any
) -> None:
    json.check(value, "it")

    cursor = stored.cursor(row_factory=tuple_row)
    cursor.execute("select cast(cast(cast(%s as text) as jsonb) as text)", [json.dumps(value)])
    [(text,)] = cursor.fetchall()

    assert same(value, json.loads(text))


@given(values)
def test_text_and_value_are_the_same_thing(value: Any) -> None:
    assert same(value, json.loads(json.dumps(value)))


@given(values, st.sampled_from([math.nan, math.inf, "\0", "a\ud800", {1: 2}, b"x", object()]))
def test_one_bad_value_anywhere_is_found(value: Any, bad: Any) -> None:
    with pytest.raises(PayloadInvalid, match=r"it has .* at /x/1/y"):
        json.check({"a": value, "x": [value, {"y": bad}], "b": value}, "it")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "it has nan at /; JSON has no such number"),
        ({"a": {"b/c": [0, math.inf]}}, "it has inf at /a/b~1c/1; JSON has no such number"),
        ({"~": math.inf}, "it has inf at /~0; JSON has no such number"),
        ({"a": "x\0"}, "it has a NUL character at /a; PostgreSQL cannot store it"),
        ({"a\0": 1}, r"it has a NUL character at /a\0; PostgreSQL cannot store it"),
        ({"a": "\ud800"}, "it has half a character (a lone surrogate) at /a"),
        ({"\ud800": 1}, r"it has half a character (a lone surrogate) at /\ud800"),
        ({"a": {7: 1}}, "it has the key 7 at /a; a JSON key is a string"),
        (
            {"a": {1}},
            "it has a set at /a; JSON has objects, arrays, strings, numbers, true, false and null",
        ),
        ([10**1001], "it has a number of more than 1000 digits at /0"),
        ([-(10**1001)], "it has a number of more than 1000 digits at /0"),
    ],
)
def test_a_refusal_says_what_and_where(value: Any, message: str) -> None:
    with pytest.raises(PayloadInvalid) as refused:
        json.check(value, "it")

    assert str(refused.value) == message
    str(refused.value).encode()  # it can be printed


def test_a_thing_inside_itself_is_refused_and_not_followed_for_ever() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(PayloadInvalid, match="nested more than 100 deep at /0/0/0"):
        json.check(loop, "it")


def test_deep_is_fine_up_to_the_limit() -> None:
    deep: Any = 1
    for _ in range(json.DEPTH):
        deep = [deep]

    json.check(deep, "it")
    with pytest.raises(PayloadInvalid, match="nested more than"):
        json.check([deep], "it")


def test_subclasses_of_strings_and_numbers_are_written_as_what_they_are() -> None:
    class Safe(str):
        def __str__(self) -> str:
            return "not what it is"

    class Metres(float):
        pass

    class Count(int):
        pass

    class Colour(enum.StrEnum):
        RED = "red"

    value = OrderedDict({Safe("k"): [Safe("v"), Metres(1.5), Count(3), Colour.RED, (1, 2)]})
    json.check(value, "it")

    assert json.dumps(value) == '{"k":["v",1.5,3,"red",[1,2]]}'


def test_a_number_of_many_digits_is_kept_to_the_last() -> None:
    number = 10**999 + 7

    json.check(number, "it")

    assert json.loads(json.dumps(number)) == number


def test_a_refusal_has_its_place_apart_and_no_longer_than_can_be_read() -> None:
    with pytest.raises(PayloadInvalid) as refused:
        json.check({"k" * 100_000: {"a": math.nan}}, "it")

    (fault,) = refused.value.faults
    assert fault.pointer.startswith("/kkk")
    assert len(fault.pointer) == json.LONGEST
    assert len(str(refused.value)) < 300


def test_a_long_list_under_a_long_key_is_walked_once() -> None:
    """Its places would be gigabytes, if each were put together."""
    started = time.process_time()
    json.check({"k" * 100_000: list(range(100_000))}, "it")
    assert time.process_time() - started < 1
