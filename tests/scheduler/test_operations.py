"""Who schedules carries operations on, and any of them may be killed at any moment."""

import json

import asyncpg
import pytest

from fairlane.core import calls
from fairlane.scheduler.operations import Operations
from scheduler.stage import Stage
from support.clock import Clock
from support.core import Core
from support.workers import Fleet, Process, until


@pytest.fixture
def carrier() -> Operations:
    return Operations(lambda: True)


async def a_failed(core: Core, jobs: int) -> None:
    """Jobs that a bulk retry can take."""
    await core.flood("acme", "a.task", jobs)
    worker = await core.a_worker()
    while leases := await core.claim(worker, 50):
        await core.finish(*leases)


def test_an_operation_survives_the_kill_of_whoever_carries_it_on(fleet: Fleet) -> None:
    fleet.db.execute("""select fairlane.define('[{"key": "noop"}]')""")
    fleet.db.execute("""select fairlane.set_queue('default', '{"max_backlog_per_tenant": null}')""")
    fleet.db.execute(
        """
        select count(*) from fairlane.enqueue_many((
          select jsonb_agg(jsonb_build_object('tenant', 'acme', 'definition', 'noop'))
            from generate_series(1, 1500)))
        """
    )
    for number in range(2):
        log = fleet.folder / f"scheduler-{number}.log"
        fleet.processes.append(Process(fleet.url, ["scheduler"], log, {}))
    until(lambda: leader(fleet) is not None, "one of them leads")
    # Spread, so that there is a middle to kill in.
    fleet.ask("select id from fairlane.create_operation('acme', 'cancel', '{}', null, 400)")
    until(lambda: fleet.ask("select done > 0 from fairlane.operation"), "it is under way")
    victim = leader(fleet)
    assert victim is not None
    victim.kill()
    assert fleet.ask("select state from fairlane.operation") == "running"

    until(lambda: fleet.ask("select state <> 'running' from fairlane.operation"), "it is done")
    told = "select concat_ws(' ', state, matched, done, skipped, failed) from fairlane.operation"
    assert fleet.ask(told) == "done 1500 1500 0 0"
    assert fleet.ask("select count(*) from fairlane.history where status = 'canceled'") == 1500
    audited = "select concat_ws(' ', count(*), count(distinct target)) from fairlane.audit"
    assert fleet.ask(f"{audited} where action = 'job.cancel'") == "1500 1500"
    fleet.assert_books_balance()


def leader(fleet: Fleet) -> Process | None:
    leads = (each for each in fleet.processes if each.said("this process schedules now"))
    return next(leads, None)


async def test_one_that_meets_a_lock_is_put_off_and_holds_up_no_other(
    stage: Stage, carrier: Operations, clock: Clock, database: str
) -> None:
    core = stage.core
    await core.flood("acme", "a.task", 1, max_attempts=1)
    await core.fail(await core.claim_one(await core.a_worker()))
    [held] = await core.send(calls.create_operation("acme", "resolve", {}))
    [free] = await core.send(calls.create_operation("acme", "cancel", {}))
    other = await asyncpg.connect(database)
    try:
        await other.execute("begin; select * from fairlane.dead_letter for update")
        assert await carrier.step(core.conn)  # a second, then it is put off
        assert await carrier.step(core.conn)
    finally:
        await other.close()
    states = "select state from fairlane.operation where id = $1"
    assert await core.one(states, free["id"]) == "done"
    assert await core.one(states, held["id"]) == "running"
    clock.advance(seconds=2)
    assert not await carrier.tick(core.conn)
    assert await core.one(states, held["id"]) == "done"


async def test_one_whose_step_cannot_be_taken_fails_and_says_why(
    stage: Stage, carrier: Operations
) -> None:
    core = stage.core
    await a_failed(core, 1)
    filter_of_another_time = json.dumps({"created_after": "yesterday-ish"})
    [made] = await core.send(calls.create_operation("acme", "retry", {}))
    await core.conn.execute(
        "update fairlane.operation set filter = $1::text::jsonb", filter_of_another_time
    )

    assert not await carrier.tick(core.conn)

    [row] = await core.send(calls.operation(made["id"]))
    assert row["state"] == "failed"
    assert "yesterday-ish" in row["error"]
