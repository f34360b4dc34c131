"""Payloads are shown without their secrets, in SQL as in Python, and may be edited as shown."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.errors import PayloadInvalid
from fairlane.redact import MARKER, paths
from fairlane.redact.mask import Mask
from support.core import Core
from support.redaction import CANARY, LETTERS, PATHS, PAYLOADS, SCHEMAS, SECRET, planted


@pytest.fixture
def db(database: str) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(database, autocommit=True) as conn:
        yield conn


def redacted(db: "psycopg.Connection[Any]", document: Any, secret: list[str]) -> Any:
    return one(db, "select fairlane.redacted(%s::jsonb, %s::text[])", json.dumps(document), secret)


def one(db: "psycopg.Connection[Any]", sql: str, *args: Any) -> Any:
    row = db.execute(sql, args).fetchone()
    assert row is not None
    return row[0]


def found(db: "psycopg.Connection[Any]", schema: Any) -> set[str]:
    return set(one(db, "select fairlane.schema_secrets(%s::jsonb)", json.dumps(schema)))


# The same as in Python -----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "schema", "payload", "shown"), SCHEMAS, ids=[s[0] for s in SCHEMAS]
)
async def test_a_schema_says_what_is_secret(
    core: Core, name: str, schema: Any, payload: Any, shown: Any
) -> None:
    tenant = await core.a_tenant()
    kind = await core.a_definition(arg_schema=schema)
    job = await core.enqueue(tenant, kind, payload=payload)

    told = await core.one("select payload from fairlane.jobs where id = $1", job)
    kept = await core.one("select payload from fairlane.job where id = $1", job)

    assert json.loads(told) == shown
    assert json.loads(kept) == payload, "the worker still gets the real one"


def test_a_path_says_what_is_secret(db: "psycopg.Connection[Any]") -> None:
    for path, payload, shown in PATHS:
        assert redacted(db, payload, [path]) == shown, path
    assert redacted(db, {"a": 1, "b": [2]}, ["/a", "/b/0", "/c"]) == {"a": MARKER, "b": [MARKER]}
    assert redacted(db, {"a": 1}, []) == {"a": 1}
    assert redacted(db, "s3cret", [""]) == MARKER


EXAMPLES = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@EXAMPLES
@given(planted())
def test_a_planted_secret_is_gone_and_the_rest_is_as_it_was(
    db: "psycopg.Connection[Any]", case: tuple[dict[str, Any], dict[str, Any], str]
) -> None:
    _, secret, pointer = case
    hidden = redacted(db, secret, [pointer])

    assert CANARY not in json.dumps(hidden)
    assert hidden == Mask([pointer]).hide(secret)
    assert redacted(db, hidden, [pointer]) == hidden


STEPS = st.sampled_from(
    ["a", "b", "x-1", "*", "**", "0", "1", "*~-a~-b", "*~-0", "~=^x-", "~1", ""]
)


@EXAMPLES
@given(PAYLOADS, st.lists(st.lists(STEPS, max_size=3).map(lambda s: "".join(f"/{x}" for x in s))))
def test_any_path_means_the_same_in_sql_and_in_python(
    db: "psycopg.Connection[Any]", payload: Any, secret: list[str]
) -> None:
    assert redacted(db, payload, secret) == Mask(secret).hide(payload)


LEAVES = st.sampled_from(
    [SECRET, {"format": "password"}, {}, True, {"$ref": "#"}, {"$ref": "#/$defs/a"}]
)


def schema_of(inside: "st.SearchStrategy[Any]") -> "st.SearchStrategy[Any]":
    named = st.dictionaries(LETTERS, inside, max_size=3)
    listed = st.lists(inside, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": named,
            "patternProperties": st.dictionaries(
                st.sampled_from(["^x", "a$", "^.*b", ".*", "a|b", "[a-z]+", "(a|b)-", "^a\\.b$"]),
                inside,
                max_size=2,
            ),
            "additionalProperties": inside,
            "items": inside,
            "prefixItems": listed,
            "anyOf": listed,
            "allOf": listed,
            "then": inside,
            "contains": inside,
            "dependentSchemas": named,
            "$defs": st.fixed_dictionaries({"a": inside}),
        },
    )


@EXAMPLES
@given(schema_of(st.recursive(LEAVES, schema_of, max_leaves=6)))
def test_any_schema_means_the_same_in_sql_and_in_python(
    db: "psycopg.Connection[Any]", schema: Any
) -> None:
    assert found(db, schema) == set(paths.of_schema(schema))


def test_what_is_no_secret_and_leads_nowhere_is_no_step(db: "psycopg.Connection[Any]") -> None:
    """Python counted it, SQL did not: of a wide schema one hid everything, the other its secret."""
    schema = {"properties": {"key": SECRET} | {f"x{n}": {"type": "string"} for n in range(2_100)}}
    assert paths.of_schema(schema) == ["/key"]
    assert found(db, schema) == {"/key"}


def test_a_schema_with_too_many_ways_through_hides_all(db: "psycopg.Connection[Any]") -> None:
    ways = {
        f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in ("l", "r")}}
        for n in range(60)
    }
    schema = {"$defs": {**ways, "d60": SECRET}, "$ref": "#/$defs/d0"}

    assert found(db, schema) == {"/*"}


# In the views --------------------------------------------------------------


async def test_no_view_shows_a_secret_wherever_the_job_lives(core: Core) -> None:
    tenant = await core.a_tenant()
    kind = await core.a_definition(
        arg_schema={"properties": {"token": SECRET}},
        result_schema={"properties": {"session": {"format": "password"}}},
        redact=["/more/*/key"],
    )
    payload = {"token": CANARY, "more": [{"key": CANARY, "n": 1}], "user": "ada"}
    shown = {"token": MARKER, "more": [{"key": MARKER, "n": 1}], "user": "ada"}
    worker = await core.a_worker(1_000_000)
    done, dead, live = [
        await core.enqueue(tenant, kind, payload=payload, max_attempts=1) for _ in range(3)
    ]
    first, second = await core.claim(worker, 2)
    assert (first.job_id, second.job_id) == (done, dead)
    result = json.dumps({"session": CANARY, "pages": 3})
    await core.fetch(
        "select fairlane.finish($1, $2, $3, $4::jsonb[])", worker, [done], [first.attempt], [result]
    )
    await core.fetch("select fairlane.fail($1, $2, $3, '{}')", worker, dead, second.attempt)

    for job in (done, dead, live):
        told = await core.one("select payload from fairlane.jobs where id = $1", job)
        assert json.loads(told) == shown
    told = await core.one("select payload from fairlane.dead_letters where id = $1", dead)
    assert json.loads(told) == shown
    told = await core.one("select result from fairlane.jobs where id = $1", done)
    assert json.loads(told) == {"session": MARKER, "pages": 3}
    # What runs it again reads the tables.
    again = await core.one("select fairlane.retry($1)", done)
    kept = await core.one("select payload from fairlane.job where id = $1", again)
    assert json.loads(kept) == payload


async def test_a_definition_without_secrets_costs_its_jobs_no_function_call(core: Core) -> None:
    rows = await core.fetch("explain (verbose) select payload, result from fairlane.jobs")
    plan = "\n".join(row[0] for row in rows)

    assert "_shown(" not in plan, "the first look must stay where the planner can put it inline"
    assert "CASE WHEN" in plan


# Edited as shown -----------------------------------------------------------


@pytest.mark.parametrize(
    ("edited", "stored", "meant"),
    [
        ({"a": MARKER, "n": 2}, {"a": "x", "n": 1}, {"a": "x", "n": 2}),
        ({"a": MARKER}, {"a": {"b": [1]}}, {"a": {"b": [1]}}),
        ({"a": MARKER}, {"a": None}, {"a": None}),
        ({"a": "new"}, {"a": "x"}, {"a": "new"}),
        ({"b": 1}, {"a": "x"}, {"b": 1}),
        ({"l": [{"k": MARKER, "n": 9}, {"k": "new"}]}, {"l": [{"k": 1, "n": 2}, {"k": 3}]},
         {"l": [{"k": 1, "n": 9}, {"k": "new"}]}),
        ({"a": MARKER}, {"a": MARKER}, {"a": MARKER}),
        ({"a": f"{MARKER}!"}, {"a": f"{MARKER}!"}, {"a": f"{MARKER}!"}),
        ({}, {"a": 1}, {}),
    ],
)  # fmt: skip
async def test_a_marker_left_where_it_was_stands_for_what_is_stored(
    core: Core, edited: Any, stored: Any, meant: Any
) -> None:
    assert json.loads(await unredacted(core, edited, stored)) == meant


@pytest.mark.parametrize(
    ("edited", "stored", "where"),
    [
        ({"b": MARKER}, {"a": "x"}, "/b,"),
        ({"a": {"c/d": MARKER}}, {"a": {"b": 1}}, "/a/c~1d,"),
        ({"u": f"pg://ada:{MARKER}@db"}, {"u": "pg://ada:pw@db"}, "/u:"),
        ({"u": f"p{MARKER}"}, {"u": "pw"}, "/u:"),
        ({"u": f"q{MARKER}"}, {"u": "pw"}, "/u:"),
        ({"l": [MARKER]}, {"l": ["x", "y"]}, "/l,"),
        ({"l": [MARKER]}, {"l": "x"}, "/l,"),
        ({"m": {MARKER: 1}}, {"m": {"ghp_x": 1}}, "/m:"),
    ],
)
async def test_a_marker_that_stands_for_nothing_is_refused_with_its_place(
    core: Core, edited: Any, stored: Any, where: str
) -> None:
    with pytest.raises(PayloadInvalid, match=r"\[redacted\]") as refused:
        await unredacted(core, edited, stored)
    assert f" {where}" in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_a_replay_keeps_the_secrets_that_the_person_could_not_see(core: Core) -> None:
    tenant = await core.a_tenant()
    kind = await core.a_definition(arg_schema={"properties": {"token": SECRET}})
    payload = {"token": CANARY, "pages": 1}
    job = await core.enqueue(tenant, kind, payload=payload, max_attempts=1)
    worker = await core.a_worker(1_000_000)
    (lease,) = await core.claim(worker)
    await core.fetch("select fairlane.fail($1, $2, $3, '{}')", worker, job, lease.attempt)
    shown = json.loads(
        await core.one("select payload from fairlane.dead_letters where id = $1", job)
    )
    assert shown == {"token": MARKER, "pages": 1}

    edited = json.dumps(shown | {"pages": 2})
    await core.fetch("select fairlane.replay(job_id => $1, payload => $2)", job, edited)

    kept = await core.one("select payload from fairlane.job where id = $1", job)
    assert json.loads(kept) == {"token": CANARY, "pages": 2}


@EXAMPLES
@given(planted())
def test_what_was_shown_and_not_touched_is_what_is_stored(
    db: "psycopg.Connection[Any]", case: tuple[dict[str, Any], dict[str, Any], str]
) -> None:
    _, stored, pointer = case
    shown = redacted(db, stored, [pointer])

    sql = "select fairlane.unredacted(%s::jsonb, %s::jsonb)"
    assert one(db, sql, json.dumps(shown), json.dumps(stored)) == stored


async def unredacted(core: Core, edited: Any, stored: Any) -> Any:
    return await core.one(
        "select fairlane.unredacted($1::jsonb, $2::jsonb)", json.dumps(edited), json.dumps(stored)
    )
