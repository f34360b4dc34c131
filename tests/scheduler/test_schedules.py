"""Schedules make jobs by the clock: on time, once, and by their policies when time was lost."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from fairlane.scheduler import store
from fairlane.scheduler.trigger import Trigger
from scheduler.stage import Stage
from support.clock import Clock

START = datetime(2030, 5, 1, 11, 59, 30, tzinfo=UTC)
NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock(database: str) -> Iterator[Clock]:
    with Clock.of(database) as found:
        found.advance(START - found.freeze())
        yield found


async def test_a_schedule_makes_its_job_when_its_time_comes(stage: Stage, clock: Clock) -> None:
    trigger = await stage.at(payload_template={"at": "{{schedule.time}}", "of": "{{tenant.slug}}"})
    assert trigger.next_at == NOON
    await stage.work()
    assert await stage.jobs() == []

    clock.advance(seconds=30)
    await stage.work()
    (job,) = await stage.jobs()
    assert job["payload"] == {"at": "2030-05-01T12:00:00Z", "of": "acme"}
    assert (job["source"], job["source_ref"]) == ("schedule", str(trigger.id))
    (firing,) = await stage.firings(trigger)
    assert (firing["scheduled_for"], firing["job_id"]) == (NOON, job["id"])
    assert (await store.find(stage.core.conn, trigger.id)).next_at == NOON + HOUR
    await stage.work()
    assert len(await stage.jobs()) == 1
    await stage.core.assert_books_balance()


async def test_a_schedule_goes_by_the_clocks_of_its_zone(stage: Stage, clock: Clock) -> None:
    trigger = await stage.at(
        cron_expr="30 5 * * *",
        timezone="America/Los_Angeles",
        payload_template={"at": "{{schedule.local_time}}"},
    )
    clock.advance(hours=1)
    await stage.work()
    assert await stage.times(trigger) == [datetime(2030, 5, 1, 12, 30, tzinfo=UTC)]
    assert await stage.payloads() == [{"at": "2030-05-01T05:30:00-07:00"}]


async def lost(stage: Stage, clock: Clock, **fields: str) -> Trigger:
    """A schedule of every hour, and five and a half hours without a scheduler."""
    trigger = await stage.at(**fields)
    clock.advance(hours=5, minutes=30)
    await stage.work()
    return trigger


async def test_missed_runs_are_made_up_for_by_one(stage: Stage, clock: Clock) -> None:
    trigger = await lost(stage, clock)
    (firing,) = await stage.firings(trigger)
    assert firing["scheduled_for"] == NOON + 5 * HOUR
    assert firing["missed"] == 5
    assert len(await stage.jobs()) == 1


async def test_missed_runs_are_left_out_if_it_says_so(stage: Stage, clock: Clock) -> None:
    trigger = await lost(stage, clock, missed="skip")
    (firing,) = await stage.firings(trigger)
    assert (firing["status"], firing["missed"]) == ("missed", 6)
    assert await stage.jobs() == []
    clock.advance(minutes=31)
    await stage.work()
    assert await stage.times(trigger) == [NOON + 6 * HOUR]


async def test_missed_runs_are_all_made_up_for_if_it_says_so(stage: Stage, clock: Clock) -> None:
    trigger = await lost(stage, clock, missed="all")
    assert await stage.times(trigger) == [NOON + n * HOUR for n in range(6)]
    assert len(await stage.jobs()) == 6


async def test_of_very_many_missed_runs_the_newest_hundred_are_made_up_for(
    stage: Stage, clock: Clock
) -> None:
    trigger = await stage.at(cron_expr="* * * * *", missed="all")
    clock.advance(days=400)
    await stage.work()
    times = await stage.times(trigger)
    assert len(times) == 100
    assert times == [times[-1] - n * timedelta(minutes=1) for n in range(99, -1, -1)]
    assert clock.now() - times[-1] < timedelta(minutes=1)
    assert (await stage.firings(trigger))[0]["missed"] > 0


async def test_a_paused_schedule_makes_nothing_and_makes_nothing_up_for(
    stage: Stage, clock: Clock
) -> None:
    trigger = await stage.at(missed="all")
    paused = await store.change(stage.core.conn, trigger, {"is_enabled": False})
    assert paused.next_at is None
    clock.advance(hours=3)
    await stage.work()
    resumed = await store.change(stage.core.conn, paused, {"is_enabled": True})
    await stage.work()
    assert await stage.jobs() == []
    assert resumed.next_at == NOON + 3 * HOUR


async def test_a_run_is_skipped_while_the_one_before_is_live(stage: Stage, clock: Clock) -> None:
    trigger = await stage.at(overlap="skip")
    worker = await stage.core.a_worker(1_000_000)
    clock.advance(minutes=1)
    await stage.work()
    lease = await stage.core.claim_one(worker)
    clock.advance(hours=1)
    await stage.work()
    assert [each["status"] for each in await stage.firings(trigger)] == ["enqueued", "skipped"]
    assert (await stage.firings(trigger))[1]["job_id"] == lease.job_id

    await stage.core.finish(lease)
    clock.advance(hours=1)
    await stage.work()
    assert await stage.times(trigger) == [NOON, NOON + 2 * HOUR]


async def test_runs_go_one_after_the_other_if_they_are_to_queue(stage: Stage, clock: Clock) -> None:
    await stage.at(overlap="queue")
    worker = await stage.core.a_worker(1_000_000)
    for _ in range(3):
        clock.advance(hours=1)
        await stage.work()
    assert len(await stage.jobs()) == 3
    lease = await stage.core.claim_one(worker)
    assert await stage.core.claim(worker, 5) == []
    await stage.core.finish(lease)
    assert len(await stage.core.claim(worker, 5)) == 1


async def test_runs_overlap_if_nothing_is_said(stage: Stage, clock: Clock) -> None:
    await stage.at()
    worker = await stage.core.a_worker(1_000_000)
    for _ in range(3):
        clock.advance(hours=1)
        await stage.work()
    assert len(await stage.core.claim(worker, 5)) == 3


async def test_jitter_puts_a_run_off_and_always_by_the_same(stage: Stage, clock: Clock) -> None:
    triggers = [await stage.at(label=f"t{n}", jitter_seconds=600) for n in range(20)]
    clock.advance(seconds=31)
    await stage.work()
    early = len(await stage.jobs())
    assert early < 20
    planned = {each.id: each.due(NOON) for each in triggers}
    assert len(set(planned.values())) == 20
    assert all(NOON <= each < NOON + timedelta(seconds=600) for each in planned.values())
    for _ in range(20):
        clock.advance(seconds=30)
        await stage.work()
        made = {each["source_ref"] for each in await stage.jobs()}
        assert made == {str(which) for which, due in planned.items() if due <= clock.now()}
    for trigger in triggers:
        assert await stage.times(trigger) == [NOON]


async def test_a_clock_that_goes_back_fires_nothing_twice(stage: Stage, clock: Clock) -> None:
    trigger = await stage.at()
    clock.advance(minutes=1)
    await stage.work()
    clock.advance(minutes=-2)
    await stage.core.fetch(
        "update fairlane.trigger set next_at = $2, due_at = $2 where id = $1", trigger.id, NOON
    )
    clock.advance(minutes=2)
    await stage.work()
    assert await stage.times(trigger) == [NOON]
    assert len(await stage.jobs()) == 1


async def test_an_error_is_kept_and_the_next_run_comes(stage: Stage, clock: Clock) -> None:
    trigger = await stage.at()
    await stage.core.a_definition("a.task", is_active=False)
    clock.advance(minutes=1)
    await stage.work()
    await stage.core.a_definition("a.task", is_active=True)
    clock.advance(hours=1)
    await stage.work()
    one, two = await stage.firings(trigger)
    assert (one["status"], one["error"]["type"]) == ("error", "DefinitionInactive")
    assert two["status"] == "enqueued"


async def test_a_periodic_job_is_tried_twice_and_then_left_to_the_next_run(
    stage: Stage, clock: Clock
) -> None:
    """docverse.md: what one run misses the next one catches; nobody is called for it."""
    await stage.core.a_definition(
        "lifecycle_eval", max_attempts=2, retry_delays=[60], dead_letter=False
    )
    trigger = await stage.at(definition_key="lifecycle_eval", overlap="skip")
    worker = await stage.core.a_worker(1_000_000)
    clock.advance(minutes=1)
    await stage.work()
    assert await stage.core.fail(await stage.core.claim_one(worker)) == "scheduled"
    clock.advance(minutes=2)
    await stage.core.tick()
    assert await stage.core.fail(await stage.core.claim_one(worker)) == "failed"
    clock.advance(hours=1)
    await stage.work()
    assert await stage.times(trigger) == [NOON, NOON + HOUR]
    assert await stage.core.one("select count(*) from fairlane.dead_letter") == 0


async def test_the_same_payload_within_the_window_makes_one_job(stage: Stage, clock: Clock) -> None:
    trigger = await stage.on(dedupe_window_seconds=120, payload_template={"path": "{{event.path}}"})
    await stage.emit({"path": "/a", "n": 1})
    await stage.emit({"path": "/a", "n": 2})  # in one batch
    await stage.emit({"path": "/b"})
    await stage.work()
    clock.advance(seconds=119)
    await stage.emit({"path": "/a"})  # in another
    await stage.work()
    assert [each["path"] for each in await stage.payloads()] == ["/a", "/b"]
    first = (await stage.jobs())[0]["id"]
    deliveries = await stage.deliveries(trigger)
    statuses = [each["status"] for each in deliveries]
    assert statuses == ["enqueued", "deduped", "enqueued", "deduped"]
    assert [each["job_id"] for each in deliveries if each["status"] == "deduped"] == [first, first]

    clock.advance(seconds=2)
    await stage.emit({"path": "/a"})
    await stage.work()
    assert [each["path"] for each in await stage.payloads()] == ["/a", "/b", "/a"]


async def test_windows_of_two_triggers_have_nothing_to_do_with_each_other(stage: Stage) -> None:
    await stage.on(dedupe_window_seconds=120)
    await stage.on(dedupe_window_seconds=120)
    await stage.on(dedupe_window_seconds=120, tenant="other")
    await stage.emit()
    await stage.emit(tenant="other")
    await stage.work()
    assert len(await stage.jobs()) == 3


async def test_a_job_that_was_refused_does_not_stand_for_the_next(stage: Stage) -> None:
    trigger = await stage.on(dedupe_window_seconds=120)
    await stage.core.a_definition("a.task", is_active=False)
    await stage.emit()
    await stage.emit()
    await stage.work()
    assert [each["status"] for each in await stage.deliveries(trigger)] == ["error", "error"]
    await stage.core.a_definition("a.task", is_active=True)
    await stage.emit()
    await stage.work()
    assert len(await stage.jobs()) == 1


async def test_the_product_keeps_its_own_house_by_schedules(stage: Stage, clock: Clock) -> None:
    chores = await stage.core.fetch(
        "select id, chore from fairlane.trigger where chore is not null"
    )
    await stage.work()
    clock.advance(hours=1)
    await stage.work()
    for row in chores:
        firings = await stage.firings(row["id"])
        assert [each["status"] for each in firings] == ["done"], row["chore"]
    assert {row["chore"] for row in chores} == {"partitions", "retention", "keys", "books"}
    day = clock.now().strftime("%Y%m%d")
    assert await stage.core.one(f"select to_regclass('fairlane.history_{day}') is not null")


async def test_what_is_past_its_retention_goes_and_what_waits_stays(
    stage: Stage, clock: Clock
) -> None:
    await stage.on(dedupe_window_seconds=60)
    await stage.emit()
    await stage.at()
    clock.advance(minutes=1)
    await stage.work()
    clock.advance(days=8)
    waiting = await stage.emit(id="waits")
    await stage.core.fetch(
        "update fairlane.event set emitted_at = emitted_at - interval '30 days' where id = $1",
        waiting["id"],
    )
    assert await stage.core.one("select events from fairlane.prune_events()") == 1
    for table in ("delivery", "firing", "recent"):
        assert await stage.core.one(f"select count(*) from fairlane.{table}") == 0, table
    assert [row["id"] for row in await stage.core.fetch("select id from fairlane.event")] == [
        "waits"
    ]
