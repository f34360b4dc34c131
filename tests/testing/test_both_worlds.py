"""What holds without a server holds in a database: one suite for both."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from fairlane import Fail, Fairlane, JobContext, Snooze
from fairlane.errors import (
    DefinitionNotFound,
    JobIdTaken,
    PayloadInvalid,
    RequestInvalid,
    TenantNotFound,
)
from fairlane.ids import uuid7
from testing.worlds import WORLDS, Seen, World


@pytest.fixture(params=WORLDS, ids=lambda world: world.__name__)
def world(request: pytest.FixtureRequest, app: Fairlane) -> Iterator[World]:
    with request.param(app) as world:
        yield world


async def nothing(ctx: JobContext) -> None:
    pass


def test_a_job_runs_and_its_result_is_json(app: Fairlane, world: World) -> None:
    @app.job("pair")
    async def pair(left: int, right: int = 2) -> tuple[int, int]:
        return left, right

    job = pair.enqueue_sync(tenant="acme", left=1)
    assert (job.status, job.queue, job.deduplicated) == ("queued", "default", False)
    assert world.job(job.id) == Seen("queued", 0, None, None)

    world.run()

    assert world.job(job.id) == Seen("succeeded", 1, [1, 2], None)


@pytest.mark.parametrize(
    ("options", "delays"),
    [
        ({"retry_delays": [5, 7], "max_attempts": 4}, [5, 7, 7]),
        ({"queue": "critical"}, [10, 30]),
        ({"queue": "bulk"}, [300]),
        ({"retry_delays": [0]}, []),
    ],
    ids=str,
)
def test_a_job_that_raises_comes_back_after_its_delays_and_then_waits_for_a_person(
    app: Fairlane, world: World, options: dict[str, Any], delays: list[int]
) -> None:
    seen: list[int] = []

    @app.job("fails", **options)
    def fails(ctx: JobContext) -> None:
        seen.append(ctx.attempt)
        raise ValueError(f"no luck, {ctx.attempt}")

    world.clock.freeze()
    job = fails.enqueue_sync(tenant="acme")
    world.run()
    for count, delay in enumerate(delays, 1):
        assert world.job(job.id) == Seen("scheduled", count, None, f"no luck, {count}")
        assert world.due(job.id) == delay
        world.clock.advance(seconds=delay - 0.001)
        world.run()
        assert len(seen) == count
        world.clock.advance(seconds=0.001)
        world.run()

    last = len(delays) + 1 if delays else 3
    assert world.job(job.id) == Seen("dead_letter", last, None, f"no luck, {last}")
    assert seen == list(range(1, last + 1))


def test_where_dead_letters_are_not_wanted_the_last_attempt_fails(
    app: Fairlane, world: World
) -> None:
    @app.job("fails", dead_letter=False)
    def fails() -> None:
        raise ValueError("no luck")

    job = fails.enqueue_sync(tenant="acme", max_attempts=1)
    world.run()

    assert world.job(job.id) == Seen("failed", 1, None, "no luck")


def test_fail_leaves_no_attempt_and_snooze_costs_none(app: Fairlane, world: World) -> None:
    seen: list[int] = []

    @app.job("gives.up")
    def gives_up() -> None:
        raise Fail("the file is gone")

    @app.job("snoozes")
    async def snoozes(ctx: JobContext) -> str:
        seen.append(ctx.attempt)
        if len(seen) < 3:
            raise Snooze(timedelta(hours=1))
        return "awake"

    world.clock.freeze()
    hopeless = gives_up.enqueue_sync(tenant="acme")
    sleepy = snoozes.enqueue_sync(tenant="acme", max_attempts=1)
    world.run()

    assert world.job(hopeless.id) == Seen("failed", 1, None, "the file is gone")
    assert world.job(sleepy.id) == Seen("scheduled", 0, None, None)
    assert world.due(sleepy.id) == 3600
    for _ in range(2):
        world.clock.advance(hours=1)
        world.run()
    assert world.job(sleepy.id) == Seen("succeeded", 1, "awake", None)
    assert seen == [1, 1, 1]


def test_jobs_that_jobs_enqueue_run_too_by_priority_then_age(app: Fairlane, world: World) -> None:
    seen: list[str] = []

    @app.job("leaf")
    def leaf(name: str) -> None:
        seen.append(name)

    @app.job("tree")
    def tree(ctx: JobContext) -> None:
        seen.append("tree")
        leaf.enqueue_sync(tenant=ctx.tenant, name="child")
        leaf.enqueue_sync(tenant=ctx.tenant, name="urgent child", priority=1)

    leaf.enqueue_sync(tenant="acme", name="late", priority=200)
    tree.enqueue_sync(tenant="acme", priority=10)
    leaf.enqueue_sync(tenant="acme", name="elder")
    world.run()

    assert seen == ["tree", "urgent child", "elder", "child", "late"]


def test_a_job_that_comes_back_is_older_than_those_that_came_since(
    app: Fairlane, world: World
) -> None:
    seen: list[str] = []

    @app.job("step", retry_delays=[60])
    def step(ctx: JobContext, name: str) -> None:
        seen.append(name)
        if name == "first" and ctx.attempt == 1:
            raise ValueError("not yet")

    step.enqueue_sync(tenant="acme", name="first")
    world.run()
    step.enqueue_sync(tenant="acme", name="second")
    world.clock.advance(minutes=2)
    world.run()

    assert seen == ["first", "first", "second"]


def test_scheduled_jobs_wait_for_the_clock(app: Fairlane, world: World) -> None:
    task = app.job("later")(nothing)
    world.clock.freeze()
    by_delay = task.enqueue_sync(tenant="acme", scheduled_for=timedelta(seconds=30))
    by_time = task.enqueue_sync(
        tenant="acme", scheduled_for=world.clock.now() + timedelta(seconds=60)
    )
    past = task.enqueue_sync(tenant="acme", scheduled_for=timedelta(seconds=-60))
    assert [job.status for job in (by_delay, by_time, past)] == ["scheduled", "scheduled", "queued"]
    assert by_time.scheduled_for - by_delay.scheduled_for == timedelta(seconds=30)

    def statuses() -> list[str]:
        world.run()
        return [world.job(job.id).status for job in (by_delay, by_time, past)]

    assert statuses() == ["scheduled", "scheduled", "succeeded"]
    world.clock.advance(seconds=30)
    assert statuses() == ["succeeded", "scheduled", "succeeded"]
    world.clock.advance(seconds=30)
    assert statuses() == ["succeeded", "succeeded", "succeeded"]


def test_one_live_job_a_dedupe_key_and_tenant(app: Fairlane, world: World) -> None:
    task = app.job("once")(nothing)

    def enqueue(tenant: str = "acme") -> tuple[Any, bool]:
        job = task.enqueue_sync(tenant=tenant, dedupe_key="k")
        return job.id, job.deduplicated

    first, second = enqueue(), enqueue()
    assert second == (first[0], True)
    assert enqueue("globex")[1] is False
    assert task.enqueue_sync(tenant="acme", dedupe_key="").deduplicated is False
    assert task.enqueue_sync(tenant="acme", dedupe_key="").deduplicated is False

    world.run()

    assert enqueue()[1] is False


def test_a_batch_may_hold_twins(app: Fairlane, world: World) -> None:
    task = app.job("once")(nothing)

    one, other, third = app.enqueue_many_sync(
        [
            task.request(tenant="acme", dedupe_key="k"),
            {"tenant": "acme", "definition_key": "once", "dedupe_key": "k"},
            {"tenant": "globex", "definition_key": "once", "dedupe_key": "k"},
        ]
    )

    assert (other.id, other.deduplicated) == (one.id, True)
    assert third.id != one.id


def test_the_same_id_again_is_the_same_job_again(app: Fairlane, world: World) -> None:
    task = app.job("once")(nothing)
    app.job("other")(nothing)
    job_id = uuid7()

    def enqueue() -> tuple[Any, str, bool]:
        job = task.enqueue_sync(tenant="acme", id=job_id)
        return job.id, job.status, job.deduplicated

    assert [enqueue(), enqueue()] == [(job_id, "queued", False)] * 2
    world.run()
    assert enqueue() == (job_id, "succeeded", False)
    assert world.job(job_id).attempts == 1
    with pytest.raises(JobIdTaken, match=f"the job id {job_id} is taken by another job"):
        app.enqueue_sync("other", tenant="acme", id=job_id)
    with pytest.raises(JobIdTaken, match="two items have the same job id"):
        app.enqueue_many_sync([task.request(tenant="acme", id=uuid7())] * 2)


def test_a_batch_with_one_bad_item_enqueues_nothing(app: Fairlane, world: World) -> None:
    task = app.job("once")(nothing)
    good = uuid7()

    with pytest.raises(DefinitionNotFound, match='definition "twice" is unknown'):
        app.enqueue_many_sync(
            [
                task.request(tenant="acme", id=good),
                {"tenant": "acme", "definition_key": "twice"},
            ]
        )

    job = app.enqueue_sync("once", tenant="globex", id=good)
    assert (job.id, job.tenant, job.status) == (good, "globex", "queued")


def test_what_cannot_be_enqueued_is_refused(app: Fairlane, world: World) -> None:
    @app.job("count")
    def count(n: int) -> None:
        pass

    with pytest.raises(PayloadInvalid, match="/n: Expected `int`, got `str`"):
        count.enqueue_sync(tenant="acme", n="three")
    with pytest.raises(PayloadInvalid, match="/m: the task has no such parameter"):
        app.enqueue_sync("count", {"n": 3, "m": 4}, tenant="acme")
    with pytest.raises(DefinitionNotFound, match='definition "count" version 2 is unknown'):
        app.enqueue_sync("count", {"n": 3}, tenant="acme", version="2")
    with pytest.raises(TenantNotFound, match='tenant "Acme Inc" is unknown'):
        count.enqueue_sync(tenant="Acme Inc", n=3)
    with pytest.raises(RequestInvalid, match="1 to 512 characters"):
        count.enqueue_sync(tenant="acme", n=3, dedupe_key="k" * 513)
    with pytest.raises(RequestInvalid, match="without a time zone"):
        count.enqueue_sync(tenant="acme", n=3, scheduled_for=world.clock.now().replace(tzinfo=None))


def test_the_newest_version_runs_where_none_is_named(app: Fairlane, world: World) -> None:
    @app.job("greet", version="1.9")
    def old() -> str:
        return "old"

    @app.job("greet", version="1.10")
    def new() -> str:
        return "new"

    jobs = [
        app.enqueue_sync("greet", tenant="acme"),
        app.enqueue_sync("greet", tenant="acme", version="1.9"),
        old.enqueue_sync(tenant="acme"),
    ]
    world.run()

    assert [world.job(job.id).result for job in jobs] == ["new", "old", "old"]
