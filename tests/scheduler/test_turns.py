"""What is wrong with one event, trigger or tenant stays with it; the others have their turn."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.scheduler import dispatcher, store
from scheduler.stage import Stage
from support.clock import Clock

MONDAY = datetime(2030, 5, 6, 11, 59, 30, tzinfo=UTC)
NOON = datetime(2030, 5, 6, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock(database: str) -> Iterator[Clock]:
    with Clock.of(database) as found:
        found.advance(MONDAY - found.freeze())
        yield found


async def many(stage: Stage, number: int, tenant: str = "acme", **data: Any) -> None:
    event = {"tenant": tenant, "name": "folder.updated", "data": data}
    await stage.core.send(calls.emit([event] * number))


async def test_a_flood_of_one_tenant_keeps_nobody_else_waiting(stage: Stage) -> None:
    await stage.on()
    await stage.on(tenant="other")
    await many(stage, 3 * dispatcher.BATCH)
    await many(stage, 2, tenant="other")

    await dispatcher.Dispatcher().tick(stage.core.conn)

    assert len(await stage.jobs(tenant="other")) == 2
    assert len(await stage.jobs(tenant="acme")) > dispatcher.BATCH // 4


async def test_more_tenants_than_a_batch_holds_have_their_turns_one_after_the_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "BATCH", 2)
    tenants = [f"t{n}" for n in range(5)]
    for tenant in tenants:
        await stage.core.a_tenant(tenant)
        await stage.on(tenant=tenant)
        await many(stage, 3, tenant=tenant)
    found = dispatcher.Dispatcher()
    for _ in range(3):
        await found.tick(stage.core.conn)
    assert {job["tenant"] for job in await stage.jobs()} == set(tenants)


async def test_a_tenant_with_very_many_triggers_leaves_room_for_the_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "MOST_MADE", 8)
    for number in range(6):
        await stage.on(payload_template={"n": number})
    await stage.on(tenant="other")
    await many(stage, 5)
    await many(stage, 5, tenant="other")
    found = dispatcher.Dispatcher()
    done = await found.tick(stage.core.conn)
    assert found.has_more
    assert done < 10
    assert len(await stage.jobs(tenant="other")) >= 1
    assert await stage.core.one("select count(*) from fairlane.emission") == 10 - done
    await stage.work()
    assert len(await stage.jobs()) == 5 * 6 + 5
    assert len(await stage.deliveries()) == 35


async def test_data_that_nobody_can_read_is_an_error_and_the_others_are_made(stage: Stage) -> None:
    """SQL takes numbers of any length; Python reads none of more than 4,300 digits."""
    trigger = await stage.on(payload_template={"n": "{{event.n}}"})
    await stage.emit({"n": 1})
    await stage.core.fetch("""select fairlane.emit('acme', 'folder.updated', '{"n": 1e5000}')""")
    await stage.emit({"n": 2})
    await stage.work()
    assert await stage.payloads() == [{"n": 1}, {"n": 2}]
    statuses = [each["status"] for each in await stage.deliveries(trigger)]
    assert statuses == ["enqueued", "error", "enqueued"]


@pytest.mark.parametrize(
    "broken",
    [
        {"filter": {"a." + "9" * 5000: 1}},
        {"filter": {"a": {"no-such-word": 1}}},
        {"payload_template": {"n": "{{event.a." + "9" * 5000 + "}}"}},
    ],
)
async def test_a_trigger_that_cannot_be_followed_holds_up_no_other(
    stage: Stage, broken: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """By SQL, a trigger comes in unchecked."""
    caplog.set_level(logging.CRITICAL)
    fields = {"trigger_type": "event", "event_name": "*", "label": "b", "definition_key": "a.task"}
    sql = "select id from fairlane.create_trigger('acme', $1::text::jsonb)"
    args = (json.dumps({**fields, **broken}),)
    [row] = await stage.core.send(Call(sql, args))
    await stage.on(payload_template={"n": 1})
    await stage.emit({"a": [1]})
    await stage.work()
    assert await stage.payloads() == [{"n": 1}]
    rows = await stage.core.fetch(
        "select status from fairlane.delivery where trigger_id = $1", row["id"]
    )
    assert [each["status"] for each in rows] in ([], ["error"])


async def test_an_event_that_nobody_can_dispatch_is_put_aside_and_says_why(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    await stage.on(payload_template={"n": "{{event.n}}"})
    for number in range(3):
        await stage.emit({"n": number}, id=f"e{number}")
    real = dispatcher.Dispatcher._made

    def poisoned(self: Any, event: Any, *more: Any) -> Any:
        if event["id"] == "e1":
            raise ZeroDivisionError("nobody thought of this")
        return real(self, event, *more)

    monkeypatch.setattr(dispatcher.Dispatcher, "_made", poisoned)
    await stage.work()
    assert await stage.payloads() == [{"n": 0}, {"n": 2}]
    rows = await stage.core.fetch("select id, error from fairlane.event where error is not null")
    assert [row["id"] for row in rows] == ["e1"]
    assert "nobody thought of this" in rows[0]["error"]


async def test_a_full_backlog_is_asked_about_once_and_not_for_every_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.core.a_tenant("full", max_backlog=1, backlog_policy="reject")
    await stage.on(tenant="full", payload_template={"n": "{{event.n}}"}, dedupe_window_seconds=60)
    await stage.on()
    for number in range(64):
        event = {"tenant": "full", "name": "folder.updated", "data": {"n": number}}
        await stage.core.send(calls.emit([event]))
    await many(stage, 3)
    asked = []
    real = calls.deliver

    def counted(*args: Any) -> Call:
        asked.append(args)
        return real(*args)

    monkeypatch.setattr(calls, "deliver", counted)
    await stage.work()
    assert len(await stage.jobs(tenant="full")) == 1
    assert len(await stage.jobs(tenant="acme")) == 3
    assert len(asked) < 30
    assert await stage.core.one("select count(*) from fairlane.recent") == 1
    await stage.core.assert_books_balance()


async def test_a_small_template_cannot_make_a_payload_that_fills_the_memory(stage: Stage) -> None:
    template = {f"k{n}": "{{event}}" for n in range(2000)}
    trigger = await stage.on(payload_template=template)
    await stage.on(payload_template={"n": 1})
    await stage.emit({"x": "y" * 200_000})
    await stage.work()
    assert await stage.payloads() == [{"n": 1}]
    (delivery,) = await stage.deliveries(trigger)
    assert (delivery["status"], delivery["error"]["type"]) == ("error", "PayloadTooLarge")


async def test_a_schedule_that_cannot_be_followed_holds_up_no_other_and_is_tried_hourly(
    stage: Stage, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    trigger = await stage.at(label="broken")
    zone = await stage.at(label="zone")
    good = await stage.at(cron_expr="* * * * *", payload_template={"n": 1})
    await stage.core.fetch(
        "update fairlane.trigger set cron_expr = 'nonsense' where id = $1", trigger.id
    )
    await stage.core.fetch(
        "update fairlane.trigger set timezone = 'Mars/Olympus' where id = $1", zone.id
    )
    for _ in range(5):
        clock.advance(minutes=1)
        await stage.work()
    assert len(await stage.times(good)) == 5
    for each in (trigger, zone):
        assert await stage.times(each) == []
        (firing,) = await stage.firings(each)
        assert firing["status"] == "error"
        assert "cannot be followed" in firing["error"]["message"]
    clock.advance(hours=1)
    await stage.work()
    assert len(await stage.firings(trigger)) == 2


async def test_a_clock_that_ran_ahead_and_was_set_back_stops_no_schedule(
    stage: Stage, clock: Clock
) -> None:
    trigger = await stage.at(cron_expr="* * * * *")
    window = await stage.on(dedupe_window_seconds=60)
    await stage.work()
    clock.advance(days=400)
    await stage.work()
    await stage.emit()
    await stage.work()
    clock.advance(days=-400)
    stage.scheduler.id = type(stage.scheduler)("").id  # the old leader died meanwhile

    for _ in range(3):
        clock.advance(minutes=1)
        await stage.work()
    await stage.emit()
    await stage.work()
    times = [each for each in await stage.times(trigger) if each < NOON + timedelta(days=1)]
    assert times == [NOON + MINUTE, NOON + 2 * MINUTE], "planned anew at the first look"
    statuses = [each["status"] for each in await stage.deliveries(window)]
    assert statuses == ["enqueued", "enqueued"]


async def test_jitter_beyond_the_interval_loses_no_run_and_keeps_their_order(
    stage: Stage, clock: Clock
) -> None:
    trigger = await stage.at(cron_expr="* * * * *", jitter_seconds=3600)
    for _ in range(60 * 4):
        clock.advance(seconds=15)
        await stage.work()
    times = await stage.times(trigger)
    assert times == [NOON + n * MINUTE for n in range(len(times))]
    assert len(times) >= 59
    assert all(not each["missed"] for each in await stage.firings(trigger))


async def test_a_shorter_window_holds_at_once_and_counts_from_the_job(
    stage: Stage, clock: Clock
) -> None:
    trigger = await stage.on(dedupe_window_seconds=86_400)
    await stage.emit()
    await stage.work()
    changed = await store.change(stage.core.conn, trigger, {"dedupe_window_seconds": 60})
    clock.advance(seconds=59)
    await stage.emit()
    await stage.work()
    clock.advance(seconds=1)
    await stage.emit()
    await stage.work()
    statuses = [each["status"] for each in await stage.deliveries(changed)]
    assert statuses == ["enqueued", "deduped", "enqueued"]


async def test_a_live_job_is_known_however_much_came_since(stage: Stage) -> None:
    trigger = await stage.on(overlap="skip")
    await stage.emit()
    await stage.work()
    paused = await store.change(stage.core.conn, trigger, {"is_enabled": False})
    await many(stage, 60)
    await stage.work()
    await store.change(stage.core.conn, paused, {"is_enabled": True})
    await stage.emit()
    await stage.work()
    assert len(await stage.jobs()) == 1
    assert (await stage.deliveries(trigger))[-1]["status"] == "skipped"


async def test_what_is_refused_is_remembered_by_nobody(stage: Stage) -> None:
    await stage.core.a_tenant("full", max_backlog=1, backlog_policy="reject")
    await stage.core.a_definition("b.task")
    await stage.on(tenant="full")
    skip = await stage.on(tenant="full", overlap="skip", event_name="b.*", definition_key="b.task")
    await many(stage, 1, tenant="full")
    await stage.work()
    await stage.emit(name="b.1", tenant="full")
    await stage.work()
    assert [each["status"] for each in await stage.deliveries(skip)] == ["error"]
    assert await stage.core.one("select count(*) from fairlane.recent") == 0


async def test_what_is_past_its_retention_goes_in_bounded_steps(stage: Stage, clock: Clock) -> None:
    for number in range(3):
        await stage.on(payload_template={"n": number})
    await many(stage, 10)
    await stage.work()
    clock.advance(days=400)
    steps = 0
    while True:
        [row] = await stage.core.fetch("select * from fairlane.prune_events(7)")
        assert row["rows"] <= 4 * 7
        steps += 1
        if not row["more"]:
            break
    assert steps > 4
    for table in ("event", "delivery"):
        assert await stage.core.one(f"select count(*) from fairlane.{table}") == 0


async def test_the_house_goes_on_pruning_until_nothing_is_left(stage: Stage, clock: Clock) -> None:
    await stage.on()
    for _ in range(6):
        await many(stage, 1000)
    await stage.work()
    clock.advance(days=400)
    await stage.work()
    assert await stage.core.one("select count(*) from fairlane.event") == 0


async def test_a_run_by_hand_on_the_minute_takes_no_schedules_place(
    stage: Stage, clock: Clock
) -> None:
    from fairlane.scheduler import asking

    trigger = await stage.at()
    clock.advance(seconds=30)
    await asking.fire(stage.core.conn, trigger, None, "acme")
    await asking.fire(stage.core.conn, trigger, None, "acme")
    await stage.work()
    firings = await stage.firings(trigger)
    assert [each["manual"] for each in firings] == [False, True, True]
    assert len(await stage.jobs()) == 3
