"""Definitions in the database: who may say what, and what holds when two say different things."""

import asyncio
from typing import Any

import asyncpg
import pytest

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.json import dumps, loads
from fairlane.errors import DefinitionInactive, DefinitionNotFound, QueueNotFound, ValueRefused
from support.clock import Clock
from support.core import Core

COMMAND: dict[str, Any] = {"executor": "command", "settings": {"argv": ["true"]}}


async def code(core: Core, key: str = "kind", **fields: Any) -> str:
    """A worker starts and says what its task is."""
    rows = await core.send(calls.define([{"key": key, **fields}]))
    change: str = rows[0]["change"]
    return change


async def person(core: Core, key: str = "kind", **fields: Any) -> str:
    """Somebody applies a file."""
    call = "select * from fairlane.apply_definitions($1::text::jsonb)"
    rows = await core.send(Call(call, (dumps([{"key": key, **fields}]),)))
    change: str = rows[0]["change"]
    return change


async def live(core: Core, **changes: Any) -> int:
    """Somebody sets a limit while it runs."""
    return await set_fields(core, "kind", "1", changes)


async def set_fields(core: Core, key: str, version: str, changes: dict[str, Any]) -> int:
    call = "select fairlane.set_definition($1, $2, $3::text::jsonb)"
    revision: int = await core.value(Call(call, (key, version, dumps(changes))))
    return revision


async def row(core: Core, key: str = "kind") -> dict[str, Any]:
    text = await core.one("select to_jsonb(d)::text from fairlane.definition d where key = $1", key)
    found: dict[str, Any] = loads(text)
    return found


async def audited(core: Core) -> list[tuple[str, Any]]:
    rows = await core.fetch(
        "select action, detail::text from fairlane.audit where action ~ '^definition' order by id"
    )
    return [(each["action"], loads(each["detail"])) for each in rows]


async def test_the_revision_rises_with_each_change_and_with_nothing_else(core: Core) -> None:
    assert await code(core) == "created"
    assert await code(core) == "same"
    assert (await row(core))["revision"] == 1

    assert await code(core, timeout_seconds=5) == "changed"
    assert await code(core, timeout_seconds=5) == "same"
    assert (await row(core))["revision"] == 2

    assert await live(core, max_running=3) == 3
    assert await live(core, max_running=3) == 3


async def test_the_audit_tells_what_became_of_which_field(core: Core) -> None:
    await code(core, timeout_seconds=5, arg_schema={"type": "object", "title": "long"})
    await code(core, timeout_seconds=7, arg_schema={"type": "object"}, reuse=True)
    await code(core, timeout_seconds=7, arg_schema={"type": "object"}, reuse=True)

    assert await audited(core) == [
        ("definition.created", {"version": "1", "timeout_seconds": 5}),
        (
            "definition.changed",
            {
                "version": "1",
                "revision": 2,
                "fields": {
                    "timeout_seconds": {"old": 5, "new": 7},
                    "reuse": {"old": False, "new": True},
                    "arg_schema": {},
                },
            },
        ),
    ]


async def test_what_was_set_live_is_not_undone_when_code_registers_again(core: Core) -> None:
    await code(core, max_running=20, timeout_seconds=60)
    await live(core, max_running=2)

    assert await code(core, max_running=20, timeout_seconds=60) == "same"
    assert (await row(core))["max_running"] == 2

    assert await code(core, max_running=30, timeout_seconds=90) == "changed"
    found = await row(core)
    assert (found["max_running"], found["timeout_seconds"]) == (2, 90)


async def test_who_lets_go_gets_what_the_code_says_by_now(core: Core) -> None:
    await code(core, max_running=20, queue="bulk")
    await live(core, max_running=2, queue="default")
    await code(core, max_running=30, queue="bulk")

    await core.fetch("select fairlane.reset_definition('kind', '1')")

    found = await row(core)
    assert (found["max_running"], found["queue"], found["settings"]) == (30, "bulk", {})
    assert await code(core, max_running=30, queue="bulk") == "same"


async def test_no_limit_can_be_set_live_too(core: Core) -> None:
    await code(core, max_running=20)
    await live(core, max_running=None)

    await code(core, max_running=20)

    assert (await row(core))["max_running"] is None


async def test_a_live_limit_holds_at_once(core: Core) -> None:
    tenant = await core.a_tenant()
    await code(core)
    await core.flood(tenant, "kind", 5)
    worker = await core.a_worker()
    assert len(await core.claim(worker, 1)) == 1

    await live(core, max_running=2)

    assert len(await core.claim(worker, 10)) == 1
    await core.assert_books_balance()


async def test_what_the_code_calls_secret_stays_secret(core: Core) -> None:
    await code(core, redact=["/token"])
    await live(core, redact=[])

    await code(core, redact=["/token"])

    assert (await row(core))["redact"] == ["/token"]


async def test_a_file_says_how_much_of_a_task_and_the_code_says_the_rest(core: Core) -> None:
    schema = {"type": "object", "title": "of the signature"}
    settings = {"task": "shop:send"}
    await code(core, arg_schema=schema, settings=settings, max_running=20)

    assert await person(core, executor="python", max_running=5, timeout_seconds=9) == "changed"
    assert await person(core, executor="python", max_running=5, timeout_seconds=9) == "same"
    assert await code(core, arg_schema=schema, settings=settings, max_running=20) == "same"
    found = await row(core)
    assert (found["max_running"], found["timeout_seconds"]) == (5, 9)
    assert found["arg_schema"] == schema
    assert found["settings"]["task"] == "shop:send"

    # What the file no longer says is the code's again.
    assert await person(core, executor="python", max_running=5) == "changed"
    assert (await row(core))["timeout_seconds"] is None
    assert await person(core, executor="python") == "changed"
    found = await row(core)
    assert (found["max_running"], found["settings"]) == (20, settings)


async def test_a_file_that_comes_before_the_code_is_not_undone_by_it(core: Core) -> None:
    assert await person(core, max_running=5) == "created"

    assert await code(core, settings={"task": "shop:send"}) == "changed"

    found = await row(core)
    assert (found["max_running"], found["settings"]["task"]) == (5, "shop:send")


async def test_a_file_says_all_of_a_command_and_undoes_what_was_set_live(core: Core) -> None:
    await person(core, **COMMAND, max_running=5, timeout_seconds=9)
    await live(core, max_running=1, max_attempts=2)

    assert await person(core, **COMMAND, timeout_seconds=9) == "changed"

    found = await row(core)
    assert (found["max_running"], found["max_attempts"]) == (None, None)
    assert (found["timeout_seconds"], found["settings"]) == (9, COMMAND["settings"])


@pytest.mark.parametrize("executor", ["command", "http"])
async def test_code_does_not_turn_a_command_or_a_call_into_a_task(
    core: Core, executor: str
) -> None:
    await person(core, executor=executor, settings={"argv": ["true"]})
    before = await row(core)

    with pytest.raises(ValueRefused, match=f'"kind" version 1 is run by {executor}'):
        await code(core, settings={"task": "shop:send"})

    assert await row(core) == before
    assert await code(core, version="2", settings={"task": "shop:send"}) == "created"


async def test_a_person_may_turn_one_into_the_other(core: Core) -> None:
    await person(core, **COMMAND)
    assert await person(core, executor="python") == "changed"
    assert (await row(core))["settings"] == {}
    assert await code(core) == "same"

    assert await person(core, **COMMAND) == "changed"
    assert (await row(core))["settings"] == COMMAND["settings"]


async def test_one_that_is_wrong_leaves_all_as_they_were(core: Core) -> None:
    await person(core, "a")
    items = [{"key": "a", "max_running": 1}, {"key": "b"}, {"key": "c", "queue": "nowhere"}]

    for verb in ("define", "apply_definitions"):
        with pytest.raises(QueueNotFound, match='"c" names the queue "nowhere"'):
            await core.send(
                Call(f"select * from fairlane.{verb}($1::text::jsonb)", (dumps(items),))
            )

    rows = await core.fetch("select key, max_running from fairlane.definition")
    assert [tuple(each) for each in rows] == [("a", None)]


@pytest.mark.parametrize(
    "changes",
    [
        {"max_running": -1},
        {"timeout_seconds": 0},
        {"executor": "shell"},
        {"settings": []},
        {"is_active": "perhaps"},
        {"key": "other"},
        {"version": "2"},
        {"revision": 7},
        {"colour": "red"},
    ],
    ids=dumps,
)
async def test_what_cannot_be_is_not_set_live(core: Core, changes: dict[str, Any]) -> None:
    await code(core, max_running=20)
    before = await row(core)

    with pytest.raises(ValueRefused) as caught:
        await set_fields(core, "kind", "1", {"max_attempts": 2, **changes})

    assert "\n" not in str(caught.value)
    assert await row(core) == before


async def test_what_is_not_there_is_not_set(core: Core) -> None:
    await code(core)

    with pytest.raises(DefinitionNotFound, match='"kind" version 2 is unknown'):
        await set_fields(core, "kind", "2", {"max_running": 1})
    with pytest.raises(DefinitionNotFound, match='"other" version 1'):
        await core.fetch("select fairlane.reset_definition('other', '1')")
    with pytest.raises(QueueNotFound, match="nowhere"):
        await live(core, queue="nowhere")


async def test_two_people_who_set_different_fields_at_once_both_have_their_way(
    core: Core, database: str
) -> None:
    await code(core)
    other = await asyncpg.connect(database)
    try:
        async with core.conn.transaction():
            await live(core, max_running=2)
            waiting = asyncio.ensure_future(live(Core(other), max_attempts=7))
            watch = "select count(*) from pg_locks where not granted and locktype = 'advisory'"
            while not await core.one(watch):
                assert not waiting.done()
        await waiting
    finally:
        await other.close()

    found = await row(core)
    assert (found["max_running"], found["max_attempts"], found["revision"]) == (2, 7, 3)


async def test_pausing_refuses_new_jobs_keeps_those_that_wait_and_lets_those_that_run(
    core: Core, clock: Clock
) -> None:
    tenant, worker = await core.a_tenant(), await core.a_worker(lease_seconds=100_000)
    await code(core)
    first, second = [await core.enqueue(tenant, "kind") for _ in range(2)]
    running = await core.claim_one(worker)
    assert running.job_id == first

    await live(core, is_active=False)

    with pytest.raises(DefinitionInactive):
        await core.enqueue(tenant, "kind")
    assert await core.claim(worker, 5) == []
    explained = loads(await core.one("select fairlane.explain($1)::text", second))
    assert explained["reason"] == "definition_inactive"
    await core.finish(running)
    assert await core.status(first) == "succeeded"

    # A worker that starts meanwhile does not wake it.
    assert await code(core) == "same"
    assert (await row(core))["is_active"] is False

    await live(core, is_active=True)
    clock.advance(seconds=61)
    await core.tick()
    assert [lease.job_id for lease in await core.claim(worker, 5)] == [second]
    await core.assert_books_balance()
