"""Usage by day, what operators ask, and jobs whose retention is over, as the API tells them."""

import csv
import io

import pytest

from api.world import Caller, World
from support.clock import Clock
from support.core import Core
from support.figures import counted


@pytest.fixture
async def worked(world: World, core: Core, clock: Clock) -> None:
    """acme ran for 10 seconds and failed for 5; other ran for 20."""
    clock.freeze()
    await core.a_definition("b.task", max_attempts=1)
    worker = await core.a_worker(1_000_000)
    for tenant, kind, seconds in (("acme", "a.task", 10), ("other", "a.task", 20)):
        await core.enqueue(tenant, kind)
        clock.advance(seconds=2)
        (lease,) = await core.claim(worker)
        clock.advance(seconds=seconds)
        await core.finish(lease)
    await core.enqueue("acme", "b.task")
    (lease,) = await core.claim(worker)
    clock.advance(seconds=5)
    await core.fail(lease)
    await counted(core, clock)


async def test_a_tenant_sees_its_own_days_and_nobody_elses(
    worked: None, viewer: Caller, rival: Caller, clock: Clock
) -> None:
    answer = await viewer.get("/usage")
    assert answer.status_code == 200, answer.text
    assert answer.json()["counted_until"] is not None
    days = answer.json()["items"]
    assert {day["tenant"] for day in days} == {"acme"}
    totals = {name: sum(day[name] for day in days) for name in NUMBERS}
    assert totals == {
        "runs": 2,
        "succeeded": 1,
        "failed": 1,
        "canceled": 0,
        "attempts": 2,
        "worker_seconds": 15,
        "retried_worker_seconds": 5,
        "queue_seconds": 2,
    }
    (day,) = (await rival.get("/usage", days=2)).json()["items"][-1:]
    assert (day["tenant"], day["worker_seconds"]) == ("other", 20)


NUMBERS = (
    *("runs", "succeeded", "failed", "canceled", "attempts"),
    *("worker_seconds", "retried_worker_seconds", "queue_seconds"),
)


async def test_usage_comes_as_csv(worked: None, viewer: Caller, operator: Caller) -> None:
    by_format = await viewer.get("/usage", format="csv")
    by_accept = await viewer.call("GET", "/usage", headers={"Accept": "text/csv"})
    assert by_format.headers["content-type"].startswith("text/csv")
    assert by_format.text == by_accept.text
    rows = list(csv.DictReader(io.StringIO(by_format.text)))
    assert sum(float(row["worker_seconds"]) for row in rows) == 15
    every = await operator.get("/admin/usage", format="csv")
    assert {row["tenant"] for row in csv.DictReader(io.StringIO(every.text))} == {"acme", "other"}


async def test_an_operator_sees_everybodys_days_or_one_tenants(
    worked: None, operator: Caller, viewer: Caller
) -> None:
    every = (await operator.get("/admin/usage")).json()["items"]
    assert {day["tenant"] for day in every} == {"acme", "other"}
    one = (await operator.acting_for("other").get("/admin/usage")).json()["items"]
    assert {day["tenant"] for day in one} == {"other"}
    assert (await viewer.get("/admin/usage")).status_code == 403


@pytest.mark.parametrize(
    "asked",
    [
        {"from": "2026-02-02", "to": "2026-02-01"},
        {"from": "2020-01-01", "to": "2026-02-01"},
        {"from": "9999-12-31", "to": "0001-01-01"},
        {"from": "yesterday"},
        {"days": 0},
        {"format": "xml"},
    ],
)
async def test_days_that_make_no_sense_are_refused(
    viewer: Caller, asked: dict[str, object]
) -> None:
    assert (await viewer.get("/usage", **asked)).status_code == 422


async def test_the_farthest_days_are_empty_not_an_error(viewer: Caller) -> None:
    for day in ("0001-01-01", "9999-12-31"):
        answer = await viewer.get("/usage", to=day)
        assert (answer.status_code, answer.json()["items"]) == (200, []), answer.text


async def test_operators_are_told_what_waits_runs_and_fails(
    worked: None, core: Core, operator: Caller, clock: Clock
) -> None:
    worker = await core.a_worker(1_000_000)
    await core.flood("acme", "a.task", 3)
    (lease,) = await core.claim(worker)
    await core.fetch("update fairlane.job set phase = 'inventory' where id = $1", lease.job_id)
    (waiting,) = (await operator.get("/admin/backlog")).json()["items"]
    assert waiting == {
        "definition_key": "a.task",
        "queue": "default",
        "queued": 2,
        "scheduled": 0,
        "is_estimate": False,
    }
    (running,) = (await operator.get("/admin/active")).json()["items"]
    assert (running["id"], running["tenant"]) == (str(lease.job_id), "acme")
    assert (running["phase"], running["attempt_count"]) == ("inventory", 1)
    assert (await operator.get("/admin/slow")).json()["items"] == []
    clock.advance(minutes=11)
    (slow,) = (await operator.get("/admin/slow")).json()["items"]
    assert slow["running_seconds"] == pytest.approx(660)
    assert (await operator.get("/admin/slow", seconds=700)).json()["items"] == []

    errors = {row["definition_key"]: row for row in (await _items(operator, "errors"))}
    assert (errors["b.task"]["rate"], errors["b.task"]["failed"]) == (1, 1)
    assert (errors["a.task"]["rate"], errors["a.task"]["finished"]) == (0, 2)
    throughput = await _items(operator, "throughput")
    assert [(row["tenant"], row["worker_seconds"]) for row in throughput] == [
        ("other", 20),
        ("acme", 15),
    ]
    assert throughput[0]["mean_wait_seconds"] == 2
    await core.fetch("select fairlane.take_sample()")
    assert (await _items(operator, "samples"))[-1]["running"] == 1


async def _items(operator: Caller, what: str) -> list[dict[str, object]]:
    answer = await operator.get(f"/admin/{what}")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, object]] = answer.json()["items"]
    return items


async def test_a_job_whose_retention_is_over_is_404_everywhere(
    world: World, viewer: Caller, admin: Caller, clock: Clock
) -> None:
    job = await world.ended("acme", "a.task", result={"n": 1})
    dead = await world.died("acme", "a.task")
    await admin.post(f"/dead-letters/{dead}/resolve")
    clock.advance(days=6)
    for path in GETS:
        assert (await viewer.get(path.format(id=job))).status_code == 200, path
    clock.advance(days=1)
    for path in GETS:
        assert (await viewer.get(path.format(id=job))).status_code == 404, path
    for verb in ("cancel", "retry"):
        assert (await admin.post(f"/jobs/{job}/{verb}")).status_code == 404, verb
    assert (await viewer.get("/jobs")).json()["items"] == []
    assert (await viewer.get(f"/jobs/{dead}")).status_code == 404
    assert (await viewer.get(f"/dead-letters/{dead}")).status_code == 404
    assert (await viewer.get("/dead-letters")).json()["items"] == []
    assert (await viewer.get("/jobs/summary")).json()["counts"]["succeeded"] == 0


GETS = (
    "/jobs/{id}",
    "/jobs/{id}/attempts",
    "/jobs/{id}/result",
    "/jobs/{id}/logs",
    "/jobs/{id}/explain",
)


async def test_a_queues_retention_is_set_live(operator: Caller, core: Core) -> None:
    changed = await operator.patch("/admin/queues/bulk", {"retention_days": 3})
    assert (changed.status_code, changed.json()["retention_days"]) == (200, 3)
    assert (await operator.patch("/admin/queues/bulk", {"retention_days": 0})).status_code == 422
    back = await operator.patch("/admin/queues/bulk", {"retention_days": None})
    assert back.json()["retention_days"] is None
    rows = await core.fetch("select detail::text from fairlane.audit where target = 'bulk'")
    assert rows[0][0] == '{"retention_days": 3}'
    assert len(rows) == 2
