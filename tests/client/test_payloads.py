"""A payload is held to its definition before anything is stored, whoever enqueues it, and how."""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import create_engine

from fairlane import Fairlane
from fairlane.client import producer
from fairlane.client.request import Request
from fairlane.client.wire import Batch
from fairlane.errors import (
    DefinitionInactive,
    DefinitionInvalid,
    DefinitionNotFound,
    PayloadInvalid,
    RequestInvalid,
)
from fairlane.schemas import inputs_hash
from support.shop import send_of

Db = psycopg.Connection[tuple[Any, ...]]

THUMBNAIL: dict[str, Any] = {
    "type": "object",
    "required": ["photo"],
    "properties": {
        "photo": {"type": "integer"},
        "sizes": {"type": "array", "items": {"type": "integer"}, "default": [64, 256]},
    },
    "additionalProperties": False,
}


def define(db: Db, key: str = "thumbnails", schema: Any = THUMBNAIL, **fields: Any) -> None:
    db.execute(
        "select fairlane.define(%s)", [Jsonb([{"key": key, "arg_schema": schema, **fields}])]
    )


def stored(db: Db) -> list[Any]:
    return db.execute(
        "select payload, inputs_hash, version from fairlane.jobs order by id"
    ).fetchall()


@pytest.fixture
def others(app: Fairlane, db: Db) -> Fairlane:
    """An app, and a definition that is not its own."""
    define(db)
    return app


Enqueue = Callable[[dict[str, Any]], Any]


@pytest.fixture(params=["ours", "async", "psycopg", "psycopg2", "sqlalchemy", "asyncpg"])
def way(request: pytest.FixtureRequest, others: Fairlane, database: str) -> Enqueue:
    """Each way that a payload of another application's definition goes in."""

    def ours(payload: dict[str, Any]) -> Any:
        return others.enqueue_sync("thumbnails", payload, tenant="acme")

    def by_loop(payload: dict[str, Any]) -> Any:
        async def send() -> Any:
            async with others:
                return await others.enqueue("thumbnails", payload, tenant="acme")

        return asyncio.run(send())

    def by_psycopg(payload: dict[str, Any]) -> Any:
        with psycopg.connect(database) as connection:
            return others.enqueue_sync("thumbnails", payload, tenant="acme", connection=connection)

    def by_asyncpg(payload: dict[str, Any]) -> Any:
        async def send() -> Any:
            connection = await asyncpg.connect(database)
            try:
                return await others.enqueue(
                    "thumbnails", payload, tenant="acme", connection=connection
                )
            finally:
                await connection.close()

        return asyncio.run(send())

    def by_psycopg2(payload: dict[str, Any]) -> Any:
        connection = psycopg2.connect(database)
        try:
            with connection:
                return others.enqueue_sync(
                    "thumbnails", payload, tenant="acme", connection=connection
                )
        finally:
            connection.close()

    def by_sqlalchemy(payload: dict[str, Any]) -> Any:
        engine = create_engine(database.replace("postgresql://", "postgresql+psycopg://"))
        try:
            with engine.begin() as connection:
                return others.enqueue_sync(
                    "thumbnails", payload, tenant="acme", connection=connection
                )
        finally:
            engine.dispose()

    ways: dict[str, Enqueue] = {
        "ours": ours,
        "async": by_loop,
        "psycopg": by_psycopg,
        "psycopg2": by_psycopg2,
        "sqlalchemy": by_sqlalchemy,
        "asyncpg": by_asyncpg,
    }
    return ways[request.param]


def test_a_payload_is_completed_and_hashed(way: Enqueue, db: Db) -> None:
    way({"photo": 7})

    complete = {"photo": 7, "sizes": [64, 256]}
    assert stored(db) == [(complete, inputs_hash("thumbnails", "1", complete), "1")]


def test_a_payload_that_does_not_fit_is_refused_with_every_fault(way: Enqueue, db: Db) -> None:
    with pytest.raises(PayloadInvalid) as refused:
        way({"sizes": [1, "2"], "colour": "red"})

    assert {str(fault) for fault in refused.value.faults} == {
        "/photo: is missing",
        "/sizes/1: must be a whole number",
        "/colour: no such property",
    }
    assert str(refused.value).startswith('the payload of "thumbnails" does not fit: ')
    assert stored(db) == []


def test_a_changed_schema_holds_from_the_next_enqueue_on(way: Enqueue, db: Db) -> None:
    way({"photo": 7})
    define(db, schema={**THUMBNAIL, "required": ["photo", "owner"]})
    with pytest.raises(PayloadInvalid, match="/owner: is missing"):
        way({"photo": 7})

    define(db, schema={"properties": {"photo": {"type": "string"}, "n": {"default": 1}}})
    way({"photo": "a"})

    assert [row[0] for row in stored(db)][1:] == [{"photo": "a", "n": 1}]


def test_without_a_version_the_newest_is_meant_from_its_first_moment(way: Enqueue, db: Db) -> None:
    way({"photo": 7})
    define(db, schema={"properties": {"photo": True, "new": {"default": True}}}, version="2")
    way({"photo": "8"})
    db.execute("update fairlane.definition set is_active = false where version = '2'")
    way({"photo": 9})

    assert [(row[0]["photo"], row[2]) for row in stored(db)] == [(7, "1"), ("8", "2"), (9, "1")]


def test_what_is_unknown_or_switched_off_is_refused_as_ever(others: Fairlane, db: Db) -> None:
    with pytest.raises(DefinitionNotFound):
        others.enqueue_sync("nothing", {}, tenant="acme")
    others.enqueue_sync("thumbnails", {"photo": 1}, tenant="acme")
    db.execute("update fairlane.definition set is_active = false")
    with pytest.raises(DefinitionInactive):
        others.enqueue_sync("thumbnails", {"photo": 1}, tenant="acme")


def test_a_definition_of_the_callers_own_transaction_counts_in_it_alone(
    others: Fairlane, db: Db, database: str
) -> None:
    changed = {"properties": {"photo": {"type": "string"}}}
    with psycopg.connect(database) as connection:
        define(connection, schema=changed)
        others.enqueue_sync("thumbnails", {"photo": "a"}, tenant="acme", connection=connection)
        with pytest.raises(PayloadInvalid, match="/photo: must be a string"):
            others.enqueue_sync("thumbnails", {"photo": 1}, tenant="acme", connection=connection)
        connection.rollback()

    others.enqueue_sync("thumbnails", {"photo": 1}, tenant="acme")
    with pytest.raises(PayloadInvalid, match="/photo: must be a whole number"):
        others.enqueue_sync("thumbnails", {"photo": "a"}, tenant="acme")

    assert [row[0]["photo"] for row in stored(db)] == [1]


def test_a_refusal_leaves_the_callers_transaction_usable(
    others: Fairlane, db: Db, database: str
) -> None:
    with psycopg.connect(database) as connection:
        with pytest.raises(PayloadInvalid):
            others.enqueue_sync("thumbnails", {}, tenant="acme", connection=connection)
        others.enqueue_sync("thumbnails", {"photo": 1}, tenant="acme", connection=connection)

    assert len(stored(db)) == 1


def test_a_definition_that_keeps_changing_is_enqueued_at_last(
    others: Fairlane, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema changes between each look and the enqueue after it."""
    looks: list[int] = []

    class Restless(Batch):
        def __init__(self, *args: Any) -> None:
            looks.append(1)
            define(db, schema={**THUMBNAIL, "title": str(len(looks))})
            super().__init__(*args)

    monkeypatch.setattr(producer, "Batch", Restless)
    others.enqueue_sync("thumbnails", {"photo": 1}, tenant="acme")

    assert len(looks) == producer.CHANGES
    assert len(stored(db)) == 1


def test_a_hash_is_of_the_version_that_is_stored(
    others: Fairlane, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer version appears after each look."""
    versions = iter(["2", "3", "4"])

    class Restless(Batch):
        def __init__(self, *args: Any) -> None:
            define(db, version=next(versions))
            super().__init__(*args)

    monkeypatch.setattr(producer, "Batch", Restless)
    others.enqueue_sync("thumbnails", {"photo": 1}, tenant="acme")

    ((payload, found, version),) = stored(db)
    assert found == inputs_hash("thumbnails", version, payload)


def test_a_command_refuses_a_value_that_would_pass_for_an_option(app: Fairlane, db: Db) -> None:
    schema = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    argv = ["sync", "{payload.path}"]
    define(db, "sync", schema, executor="command", settings={"argv": argv})
    app.enqueue_sync("sync", {"path": "/a"}, tenant="acme")
    with pytest.raises(PayloadInvalid) as refused:
        app.enqueue_sync("sync", {"path": "--all"}, tenant="acme")

    assert [fault.pointer for fault in refused.value.faults] == ["/path"]
    assert len(stored(db)) == 1


# Many at once ---------------------------------------------------------------------


def item(payload: Any, key: str = "thumbnails") -> dict[str, Any]:
    return {"definition_key": key, "tenant": "acme", "payload": payload}


def test_of_many_every_fault_names_its_item_and_none_is_stored(others: Fairlane, db: Db) -> None:
    with pytest.raises(PayloadInvalid) as refused:
        others.enqueue_many_sync(
            [item({"photo": 1}), item({}), item({"photo": 3}), item({"photo": "4", "x": 1})]
        )

    assert [str(fault) for fault in refused.value.faults] == [
        "/1/payload/photo: is missing",
        "/3/payload/photo: must be a whole number",
        "/3/payload/x: no such property",
    ]
    assert str(refused.value).startswith('the payload of 2 items ("thumbnails") does not fit: ')
    assert stored(db) == []


def test_so_do_those_of_an_own_task(app: Fairlane, db: Db) -> None:
    with pytest.raises(PayloadInvalid) as refused:
        app.enqueue_many_sync(
            [item({"number": 1}, "invoices.send"), item({"number": "x"}, "invoices.send")]
        )

    assert [fault.pointer for fault in refused.value.faults] == ["/1/payload/number"]
    assert stored(db) == []


def test_of_many_each_definition_is_asked_for_once(
    others: Fairlane, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(db, "previews", {"properties": {"n": {"default": 1}}})
    send = send_of(others)
    others.register_sync()
    calls: list[str] = []
    sending = others._producer.pools.send

    async def counted(call: Any) -> Any:
        calls.append(call.sql)
        return await sending(call)

    monkeypatch.setattr(others._producer.pools, "send", counted)
    many: list[Request | dict[str, Any]] = [item({"photo": n}) for n in range(40)]
    many += [item({}, "previews") for _ in range(40)]
    many += [send.request(tenant="acme", number=n) for n in range(40)]
    others.enqueue_many_sync(many)
    others.enqueue_many_sync(many)

    # One look for both, and an enqueue each time.
    assert len(calls) == 3
    assert len(stored(db)) == 240
    assert all(row[1] for row in stored(db))


# Own tasks ------------------------------------------------------------------------


def test_an_own_task_is_hashed_as_it_is_stored(app: Fairlane, db: Db) -> None:
    send = send_of(app)
    send.enqueue_sync(tenant="acme", number=7)
    app.enqueue_sync("invoices.send", {"note": "", "number": 7}, tenant="acme")
    app.enqueue_many_sync(
        [item({"number": 7}, "invoices.send"), send.request(tenant="acme", number=7)]
    )

    complete = {"number": 7, "note": ""}
    assert stored(db) == [(complete, inputs_hash("invoices.send", "1", complete), "1")] * 4


def test_a_schema_that_no_payload_should_meet_is_told_with_its_definition(
    app: Fairlane, db: Db
) -> None:
    define(db, "hostile", {"$ref": "file:///etc/passwd"})

    with pytest.raises(
        DefinitionInvalid, match='definition "hostile" version 1 can take no payload'
    ):
        app.enqueue_sync("hostile", {}, tenant="acme")


# Reuse ----------------------------------------------------------------------------


def finish(db: Db, queue: str) -> None:
    db.execute(
        "with w as (select gen_random_uuid() as id),"
        " r as materialized (select id, fairlane.register_worker(id, 'w') from w)"
        " select id from r"
    )
    (worker,) = db.execute("select id from fairlane.worker limit 1").fetchone() or (None,)
    db.execute(
        "select fairlane.finish(%s, array_agg(job_id), array_agg(attempt), array_agg('{}'::jsonb))"
        "  from fairlane.claim(%s, %s, 10)",
        [worker, worker, queue],
    )


def test_a_job_that_succeeded_with_the_same_inputs_will_do(others: Fairlane, db: Db) -> None:
    first = others.enqueue_sync("thumbnails", {"photo": 7}, tenant="acme")
    finish(db, "default")

    again = others.enqueue_sync(
        "thumbnails", {"photo": 7.0, "sizes": [64, 256]}, tenant="acme", reuse=True
    )
    anew = others.enqueue_sync("thumbnails", {"photo": 7}, tenant="acme", reuse=False)
    other = others.enqueue_sync("thumbnails", {"photo": 8}, tenant="acme", reuse=True)

    assert (first.reused, again.reused, anew.reused, other.reused) == (False, True, False, False)
    assert again.id == first.id
    assert len({first.id, anew.id, other.id}) == 3


def test_a_task_says_by_the_job_whether_a_result_will_do(app: Fairlane, db: Db) -> None:
    send = send_of(app)
    first = send.enqueue_sync(tenant="acme", number=1)
    finish(db, "critical")

    assert send.enqueue_sync(tenant="acme", number=1, reuse=True).id == first.id
    assert send.enqueue_sync(tenant="acme", number=1).reused is False
    [answer] = app.enqueue_many_sync([send.request(tenant="acme", number=1, reuse=True)])
    assert (answer.id, answer.reused) == (first.id, True)


def test_reuse_is_yes_no_or_left_open(app: Fairlane) -> None:
    with pytest.raises(RequestInvalid, match="reuse must be true or false"):
        send_of(app).enqueue_sync(tenant="acme", number=1, reuse="yes")  # type: ignore[arg-type]
