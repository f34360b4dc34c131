"""Equal work has an equal hash: whoever wrote it down, and whatever jsonb made of it."""

import hashlib
import json as stdlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.core import json
from fairlane.schemas import canonical, inputs_hash
from support.cluster import Cluster

Db = psycopg.Connection[tuple[Any, ...]]

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
_NUMBERS = (
    st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([1e15, 1e16, 1e21, 1e22, 1e23, 1.5e300, 5e-324, -0.0, 1e-6, 9.9e-7, 0.1, 2.5])
)
VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def db(cluster: Cluster) -> Iterator[Db]:
    with cluster.fresh() as url, psycopg.connect(url, autocommit=True) as connection:
        yield connection


def through_jsonb(db: Db, value: Any) -> Any:
    """As it is sent, as jsonb keeps it, and as it is read again."""
    row = db.execute("select cast(cast(%s as jsonb) as text)", [json.dumps(value)]).fetchone()
    assert row is not None
    return json.loads(row[0])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=VALUES)
def test_the_hash_is_the_same_as_given_and_as_read_from_the_database(db: Db, value: Any) -> None:
    assert canonical(through_jsonb(db, value)) == canonical(value)


@pytest.mark.parametrize(
    "text", ["1.50", "1E+2", "-0", "12345678901234567890", "0.1234567890123456789"]
)
def test_a_decimal_hashes_as_what_comes_back(db: Db, text: str) -> None:
    value = [Decimal(text)]

    assert canonical(through_jsonb(db, value)) == canonical(value)


def shuffled(value: Any) -> Any:
    match value:
        case dict():
            return {name: shuffled(value[name]) for name in reversed(value)}
        case list():
            return [shuffled(each) for each in value]
        case _:
            return value


@given(VALUES)
def test_the_order_of_keys_does_not_matter(value: Any) -> None:
    assert canonical(shuffled(value)) == canonical(value)


@given(VALUES)
def test_the_canonical_form_is_json_of_the_same_value_and_settled(value: Any) -> None:
    text = canonical(value)

    assert canonical(json.loads(text)) == text
    assert exactly(text) == exactly(json.dumps(value))


def exactly(text: str | bytes) -> Any:
    """Numbers to the last digit, as jsonb reads them."""
    return stdlib.loads(text, parse_float=Decimal, parse_int=Decimal)


def plainly(value: Any) -> str:
    """The same by another road, for values without fractions."""
    return stdlib.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | _TEXT,
        lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner),
    )
)
def test_keys_are_sorted_by_code_point_and_text_is_escaped_no_more_than_it_must(value: Any) -> None:
    assert canonical(value).decode() == plainly(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (1e2, "100"),
        (1e15, "1" + "0" * 15),
        (1e16, "1" + "0" * 16),
        (1e23, "1" + "0" * 23),
        (10**30 + 1, str(10**30 + 1)),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (1.5e-10, "1.5e-10"),
        (123456.789, "123456.789"),
        ('\u2028\x7f\x1f\n"\\/é😀', '"\u2028\x7f\\u001f\\n\\"\\\\/é😀"'),
        (
            {"\U00010000": 1, "\uffff": 2, "b": 3, "": 4, "a": {}},
            '{"":4,"a":{},"b":3,"\uffff":2,"\U00010000":1}',
        ),
    ],
)
def test_the_form_is_fixed_for_every_language_to_make(value: Any, text: str) -> None:
    assert canonical(value).decode() == text


def test_the_hash_covers_key_version_and_payload() -> None:
    expected = hashlib.sha256(b'["reports.generate","1",{"a":1,"b":[]}]').hexdigest()

    assert inputs_hash("reports.generate", "1", {"b": [], "a": 1.0}) == expected
    assert (
        len(
            {
                inputs_hash(*each)
                for each in [("a", "1", {}), ("a", "2", {}), ("b", "1", {}), ("a", "1", {"c": 1})]
            }
        )
        == 4
    )


def test_true_is_not_one_and_null_is_not_nothing() -> None:
    assert (
        len({canonical(each) for each in ({"a": True}, {"a": 1}, {"a": "1"}, {"a": None}, {})}) == 5
    )
