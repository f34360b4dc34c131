"""Events become jobs: once each, for the triggers that take them, with what came of each kept."""

import pytest

from fairlane.core import calls
from fairlane.errors import PayloadInvalid, PayloadTooLarge, RequestInvalid, TenantNotFound
from scheduler.stage import Stage


async def test_an_event_makes_a_job_of_the_trigger_that_takes_it(stage: Stage) -> None:
    trigger = await stage.on(payload_template={"provider_id": "{{event.provider_id}}"})
    event = await stage.emit({"provider_id": 7}, correlation_id="c-1")

    await stage.work()

    (job,) = await stage.jobs()
    assert job["payload"] == {"provider_id": 7}
    assert (job["source"], job["source_ref"]) == ("event", event["id"])
    assert job["correlation_id"] == "c-1"
    assert job["created_by"] == f"trigger:{trigger.id}"
    assert job["inputs_hash"] is not None
    (delivery,) = await stage.deliveries(trigger)
    assert (delivery["status"], delivery["job_id"]) == ("enqueued", job["id"])
    await stage.core.assert_books_balance()


async def test_an_event_of_the_same_id_is_one_event(stage: Stage) -> None:
    await stage.on()
    first = await stage.emit({"n": 1}, id="evt-1")
    again = await stage.emit({"n": 2}, id="evt-1")
    await stage.work()
    third = await stage.emit({"n": 3}, id="evt-1")
    await stage.work()

    assert not first["duplicate"]
    assert again["duplicate"]
    assert third["duplicate"]
    assert third["emitted_at"] == first["emitted_at"], "the answer tells of the event that is there"
    assert len(await stage.jobs()) == 1
    assert await stage.core.one("select count(*) from fairlane.event") == 1


async def test_the_same_id_twice_in_one_call_is_one_event(stage: Stage) -> None:
    event = {"tenant": "acme", "name": "folder.updated", "id": "twin"}
    one, two = await stage.core.send(calls.emit([event, event]))
    assert (one["duplicate"], two["duplicate"]) == (False, True)


async def test_another_tenants_event_may_have_the_same_id(stage: Stage) -> None:
    await stage.on()
    await stage.on(tenant="other")
    await stage.emit(id="evt-1")
    assert not (await stage.emit(id="evt-1", tenant="other"))["duplicate"]
    await stage.work()
    assert {job["tenant"] for job in await stage.jobs()} == {"acme", "other"}


async def test_an_event_exists_if_and_only_if_its_transaction_commits(stage: Stage) -> None:
    await stage.on()
    transaction = stage.core.conn.transaction()
    await transaction.start()
    await stage.emit()
    await transaction.rollback()
    await stage.work()
    assert await stage.jobs() == []


async def test_no_trigger_takes_an_event_of_another_tenant(stage: Stage) -> None:
    await stage.on(tenant="other")
    await stage.emit()
    await stage.work()
    assert await stage.jobs() == []
    assert await stage.deliveries() == []


@pytest.mark.parametrize(
    ("pattern", "name", "taken"),
    [
        ("provider.folder.updated", "provider.folder.updated", True),
        ("provider.folder.updated", "provider.folder.updated.twice", False),
        ("provider.folder.updated", "provider.folder", False),
        ("provider.*", "provider.folder.updated", True),
        ("provider.*", "provider.gone", True),
        ("provider.*", "provider", False),
        ("provider.*", "providers.gone", False),
        ("provider.folder.*", "provider.file.updated", False),
        ("*", "provider", True),
        ("*", "provider.gone", True),
    ],
)
async def test_names_are_exact_or_end_in_a_star(
    stage: Stage, pattern: str, name: str, taken: bool
) -> None:
    await stage.on(event_name=pattern)
    await stage.emit(name=name)
    await stage.work()
    assert len(await stage.jobs()) == taken


async def test_several_triggers_take_one_event_and_each_makes_its_job(stage: Stage) -> None:
    names = ("folder.updated", "folder.*", "*", "folder.updated")
    for number, name in enumerate(names):
        await stage.on(event_name=name, payload_template={"number": number})
    await stage.emit()
    await stage.work()
    assert sorted(job["number"] for job in await stage.payloads()) == [0, 1, 2, 3]


async def test_a_missing_field_is_an_error_on_the_delivery_and_never_an_empty_text(
    stage: Stage,
) -> None:
    bad = await stage.on(payload_template={"path": "at {{event.folder.path}}"})
    await stage.on(payload_template={"n": 1})
    await stage.emit({"folder": {}})
    await stage.work()

    assert await stage.payloads() == [{"n": 1}], "the other trigger is not held up"
    (delivery,) = await stage.deliveries(bad)
    assert delivery["status"] == "error"
    assert delivery["job_id"] is None
    assert delivery["error"] == {
        "type": "FieldMissing",
        "message": "{{event.folder.path}} is not there",
        "field": "event.folder.path",
        "pointer": "/path",
    }


async def test_a_payload_that_does_not_fit_is_an_error_with_its_pointers(stage: Stage) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    await stage.core.a_definition("strict", arg_schema=schema)
    trigger = await stage.on(definition_key="strict", payload_template={"n": "{{event.n}}"})
    await stage.emit({"n": "seven"})
    await stage.work()
    (delivery,) = await stage.deliveries(trigger)
    assert delivery["status"] == "error"
    assert [each["pointer"] for each in delivery["error"]["faults"]] == ["/n"]
    assert await stage.jobs() == []


async def test_a_disabled_trigger_makes_no_job_and_says_so(stage: Stage) -> None:
    trigger = await stage.on(is_enabled=False)
    await stage.emit()
    await stage.work()
    assert await stage.jobs() == []
    assert [each["status"] for each in await stage.deliveries(trigger)] == ["disabled"]


async def test_a_job_that_the_database_refuses_is_an_error_and_the_others_are_made(
    stage: Stage,
) -> None:
    await stage.core.a_tenant("full", max_backlog=1, backlog_policy="reject")
    trigger = await stage.on(tenant="full", payload_template={"n": "{{event.n}}"})
    await stage.on()
    for number in range(4):
        await stage.emit({"n": number}, tenant="full")
    await stage.emit()
    await stage.work()
    statuses = [each["status"] for each in await stage.deliveries(trigger)]
    assert statuses == ["enqueued", "error", "error", "error"]
    refused = (await stage.deliveries(trigger))[1]
    assert refused["error"]["type"] == "BacklogFull"
    assert len(await stage.jobs(tenant="acme")) == 1
    assert await stage.core.one("select count(*) from fairlane.emission") == 0


async def test_a_definition_that_is_switched_off_is_an_error(stage: Stage) -> None:
    trigger = await stage.on()
    await stage.core.a_definition("a.task", is_active=False)
    await stage.emit()
    await stage.work()
    (delivery,) = await stage.deliveries(trigger)
    assert (delivery["status"], delivery["error"]["type"]) == ("error", "DefinitionInactive")


async def test_a_trigger_without_a_version_follows_the_newest(stage: Stage) -> None:
    await stage.on()
    await stage.on(version="1", payload_template={"old": True})
    await stage.core.a_definition("a.task", version="2")
    await stage.emit()
    await stage.work()
    assert {(job["version"], "old" in job["payload"]) for job in await stage.jobs()} == {
        ("2", False),
        ("1", True),
    }


async def test_a_changed_trigger_is_followed_as_it_is_now(stage: Stage) -> None:
    from fairlane.scheduler import store

    trigger = await stage.on(payload_template={"n": 1})
    await stage.emit()
    await stage.work()
    await store.change(stage.core.conn, trigger, {"payload_template": {"n": 2}})
    await stage.emit()
    await stage.work()
    assert await stage.payloads() == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"tenant": "nobody", "name": "a"}, TenantNotFound),
        ({"tenant": "acme"}, RequestInvalid),
        ({"tenant": "acme", "name": "a b"}, RequestInvalid),
        ({"tenant": "acme", "name": "a..b"}, RequestInvalid),
        ({"tenant": "acme", "name": "a.*"}, RequestInvalid),
        ({"tenant": "acme", "name": "a" * 201}, RequestInvalid),
        ({"tenant": "acme", "name": "a", "id": "x" * 201}, RequestInvalid),
        ({"tenant": "acme", "name": "a", "data": [1]}, PayloadInvalid),
        ({"tenant": "acme", "name": "a", "data": {"x": "y" * 300_000}}, PayloadTooLarge),
    ],
)
async def test_what_is_no_event_is_refused(
    stage: Stage, event: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await stage.core.send(calls.emit([event]))
    assert await stage.core.one("select count(*) from fairlane.event") == 0


async def test_emit_is_one_call_in_sql(stage: Stage) -> None:
    await stage.on(payload_template={"n": "{{event.n}}"})
    (row,) = await stage.core.fetch(
        """select * from fairlane.emit(tenant => 'acme', name => 'folder.updated',
                                       data => '{"n": 5}')"""
    )
    assert row["id"]
    await stage.work()
    assert await stage.payloads() == [{"n": 5}]
