"""Alerts: each is pending, fires once it has lasted, is told once a cooldown, and ends."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from fairlane.core import calls, json
from fairlane.errors import AlertNotFound, ValueRefused, WrongState
from support.clock import Clock
from support.core import Core


class Watch:
    """The alerts of one database, looked at by hand on a clock that stands."""

    def __init__(self, core: Core, clock: Clock) -> None:
        self.core = core
        self.clock = clock

    async def look(self, seconds: float = 0) -> list[tuple[str, str, str]]:
        """Let time pass, and say what is told then."""
        self.clock.advance(seconds=seconds)
        rows = await self.core.fetch("select * from fairlane.evaluate_alerts(-1)")
        return [(row["event"], row["rule"], row["subject"]) for row in rows]

    async def states(self, rule: str) -> dict[str, str]:
        rows = await self.core.fetch("select * from fairlane.alerts where rule = $1", rule)
        return {row["subject"]: row["state"] for row in rows}

    async def the_alert(self, rule: str) -> asyncpg.Record:
        (row,) = await self.core.fetch("select * from fairlane.alerts where rule = $1", rule)
        return row

    async def set(self, rule: str, **changes: Any) -> None:
        await self.core.send(calls.set_alert_rule(rule, changes))

    async def only(self, rule: str, **changes: Any) -> None:
        """Leave one rule on."""
        await self.core.fetch("update fairlane.alert_rule set is_enabled = name = $1", rule)
        if changes:
            await self.set(rule, **changes)


@pytest.fixture
async def watch(core: Core, clock: Clock) -> Watch:
    clock.freeze()
    await core.limit_queue("default", max_backlog_per_tenant=None)
    await core.a_tenant("acme")
    await core.a_definition("a.task")
    return Watch(core, clock)


async def a_server(core: Core, lease: float = 1_000_000, **queues: int) -> UUID:
    worker = uuid4()
    name = f"w-{worker.hex[:6]}"
    await core.send(calls.register_worker(worker, name, queues, lease_seconds=lease))
    return worker


async def dead(core: Core, count: int) -> list[UUID]:
    await core.flood("acme", "a.task", count, max_attempts=1)
    worker = await core.a_worker(1_000_000)
    await core.limit_tenant("acme", max_running=None)
    await core.limit_plan("pro", max_running=None)
    leases = await core.claim(worker, count)
    for lease in leases:
        assert await core.fail(lease) == "dead_letter"
    return [lease.job_id for lease in leases]


async def test_a_backlog_fires_only_once_it_has_lasted(watch: Watch) -> None:
    await a_server(watch.core, default=8)
    await watch.core.flood("acme", "a.task", 1001)
    await watch.core.sweep()
    assert await watch.look() == []
    assert await watch.states("queue_backlog") == {"default": "pending"}
    assert ("firing", "queue_backlog", "default") not in await watch.look(seconds=899)
    assert ("firing", "queue_backlog", "default") in await watch.look(seconds=1)
    alert = await watch.the_alert("queue_backlog")
    assert (alert["state"], alert["value"], alert["threshold"]) == ("firing", 1001, 1000)
    assert "1001 jobs, over 1000" in alert["summary"]


async def test_a_backlog_that_goes_in_time_is_forgotten(watch: Watch) -> None:
    await watch.only("queue_backlog", threshold=1)
    jobs = await watch.core.flood("acme", "a.task", 2)
    await watch.look()
    await watch.core.cancel(jobs[0])
    assert await watch.look(seconds=600) == []
    assert await watch.states("queue_backlog") == {}
    await watch.core.enqueue("acme", "a.task")
    # The fifteen minutes begin anew.
    assert await watch.look(seconds=600) == []
    assert await watch.states("queue_backlog") == {"default": "pending"}


async def test_an_alert_is_told_reminds_after_its_cooldown_and_tells_its_end(watch: Watch) -> None:
    await watch.only("dead_letters", threshold=1, cooldown_seconds=60, clear_seconds=30)
    jobs = await dead(watch.core, 2)
    assert await watch.look() == [("firing", "dead_letters", "dead letters")]
    assert await watch.look() == []
    assert await watch.look(seconds=59) == []
    assert await watch.look(seconds=1) == [("still_firing", "dead_letters", "dead letters")]

    for job in jobs:
        await watch.core.resolve(job)
    assert await watch.look(seconds=1) == []
    # Hysteresis: it must stay gone.
    assert await watch.states("dead_letters") == {"dead letters": "firing"}
    assert await watch.look(seconds=30) == [("resolved", "dead_letters", "dead letters")]
    assert await watch.look(seconds=30) == []
    assert await watch.states("dead_letters") == {"dead letters": "resolved"}


async def test_one_that_comes_back_within_its_cooldown_is_not_told_anew(watch: Watch) -> None:
    await watch.only("dead_letters", threshold=0, cooldown_seconds=600, clear_seconds=0)
    (job,) = await dead(watch.core, 1)
    assert len(await watch.look()) == 1
    await watch.core.resolve(job)
    assert [told[0] for told in await watch.look(seconds=1)] == ["resolved"]
    await dead(watch.core, 1)
    assert await watch.look(seconds=10) == []
    assert await watch.look(seconds=500) == []
    assert [told[0] for told in await watch.look(seconds=100)] == ["firing"]


async def test_who_acknowledges_is_not_reminded_but_told_of_the_end(watch: Watch) -> None:
    await watch.only("dead_letters", threshold=0, cooldown_seconds=10, clear_seconds=0)
    (job,) = await dead(watch.core, 1)
    await watch.look()
    alert = await watch.the_alert("dead_letters")
    await watch.core.fetch("select set_config('fairlane.actor', 'ann', false)")
    await watch.core.send(calls.acknowledge_alert(alert["id"], "on it"))
    assert await watch.look(seconds=60) == []
    alert = await watch.the_alert("dead_letters")
    assert (alert["state"], alert["acknowledged_by"], alert["note"]) == (
        "acknowledged",
        "ann",
        "on it",
    )
    assert (
        await watch.core.one(
            "select actor from fairlane.audit where action = 'alert.acknowledge' and target = $1",
            str(alert["id"]),
        )
        == "ann"
    )
    await watch.core.resolve(job)
    assert [told[0] for told in await watch.look(seconds=1)] == ["resolved"]
    with pytest.raises(WrongState, match="is resolved; only one that fires"):
        await watch.core.send(calls.acknowledge_alert(alert["id"]))
    with pytest.raises(AlertNotFound, match="see: fairlane alerts list"):
        await watch.core.send(calls.acknowledge_alert(uuid4()))


async def test_nobody_is_told_while_a_silence_holds_and_all_are_when_it_ends(watch: Watch) -> None:
    await watch.only("dead_letters", threshold=0)
    until = watch.clock.now().replace(microsecond=0)
    with pytest.raises(ValueRefused, match="a silence ends at a time ahead"):
        await watch.core.send(calls.silence_alerts("dead_*", "*", until, "known"))
    until = watch.clock.advance(seconds=100)
    watch.clock.advance(seconds=-100)
    await watch.core.send(calls.silence_alerts("dead_*", "*", until, "known"))
    await dead(watch.core, 1)
    assert await watch.look() == []
    assert await watch.states("dead_letters") == {"dead letters": "silenced"}
    assert await watch.look(seconds=99) == []
    assert [told[0] for told in await watch.look(seconds=1)] == ["firing"]
    assert await watch.core.one("select count(*) from fairlane.audit where action='alert.silence'")


async def test_an_underscore_in_a_pattern_is_an_underscore(core: Core) -> None:
    fits = "select fairlane.fits_pattern($1, $2)"
    assert not await core.one(fits, "deadXletters", "dead_letters")
    assert await core.one(fits, "acme/default", "acme/*")
    assert not await core.one(fits, "acmeX", "acme")


async def test_two_leaders_at_once_tell_it_once(
    watch: Watch, database: str, conn: "asyncpg.Connection[Any]"
) -> None:
    await watch.only("dead_letters", threshold=0)
    await dead(watch.core, 1)
    await watch.core.send(
        calls.set_alert_channel("hook", {"kind": "webhook", "settings": {"url": "https://x.test/"}})
    )
    sessions = [await asyncpg.connect(database) for _ in range(6)]
    try:
        for _ in range(5):
            await asyncio.gather(
                *(each.fetch("select * from fairlane.evaluate_alerts(-1)") for each in sessions)
            )
    finally:
        for each in sessions:
            await each.close()
    assert await watch.core.one("select count(*) from fairlane.job where source = 'system'") == 1
    assert await watch.core.one("select count(*) from fairlane.notification") == 2


async def test_a_leader_that_dies_before_its_commit_told_nothing_and_the_next_tells_it(
    watch: Watch, database: str
) -> None:
    await watch.only("dead_letters", threshold=0)
    await dead(watch.core, 1)
    dying = await asyncpg.connect(database)
    await dying.execute("begin")
    assert await dying.fetch("select * from fairlane.evaluate_alerts(-1)")
    # While it is at it, nobody else is.
    assert await watch.look() == []
    dying.terminate()
    for _ in range(200):
        if told := await watch.look():
            break
        await asyncio.sleep(0.01)
    assert told == [("firing", "dead_letters", "dead letters")]
    assert await watch.core.one("select count(*) from fairlane.notification") == 1


async def test_the_database_bounds_how_often_anybody_looks(watch: Watch) -> None:
    await watch.only("dead_letters", threshold=0)
    await watch.core.fetch("select * from fairlane.evaluate_alerts()")
    await dead(watch.core, 1)
    assert await watch.core.fetch("select * from fairlane.evaluate_alerts()") == []
    watch.clock.advance(seconds=5)
    assert len(await watch.core.fetch("select * from fairlane.evaluate_alerts()")) == 1
    # A clock that was set back by a day stops nobody.
    watch.clock.advance(days=-1)
    await watch.core.fetch("select * from fairlane.evaluate_alerts()")
    assert await watch.core.one("select alerts_at from fairlane.watch") == watch.clock.now()


async def test_pages_hear_of_every_change(watch: Watch, database: str) -> None:
    await watch.only("dead_letters", threshold=0)
    await dead(watch.core, 1)
    heard: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    listener = await asyncpg.connect(database)
    try:
        await listener.add_listener(
            "fairlane_alerts", lambda *said: heard.put_nowait(json.loads(said[3]))
        )
        await watch.look()
        states = {(await asyncio.wait_for(heard.get(), 5))["state"] for _ in range(2)}
        assert states == {"pending", "firing"}
    finally:
        await listener.close()


async def test_a_rule_that_is_switched_off_ends_quietly(watch: Watch) -> None:
    await watch.only("dead_letters", threshold=0)
    await dead(watch.core, 1)
    await watch.look()
    await watch.set("dead_letters", is_enabled=False)
    assert await watch.look(seconds=60) == []
    assert await watch.states("dead_letters") == {"dead letters": "resolved"}


@pytest.mark.parametrize(
    "changes",
    [
        {"threshold": -1},
        {"for_seconds": 604_801},
        {"severity": "bad"},
        {"name": "x"},
        {"channels": ["nowhere"]},
        {"window_seconds": 5},
    ],
)
async def test_a_rule_is_changed_within_reason(watch: Watch, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueRefused):
        await watch.set("dead_letters", **changes)
    with pytest.raises(AlertNotFound, match="see: fairlane alerts rules"):
        await watch.set("no_such_rule", threshold=1)


# What each rule sees.


async def test_a_stuck_job_fires_though_it_is_parked_at_once(watch: Watch) -> None:
    await watch.only("stuck_jobs")
    await watch.core.enqueue("acme", "a.task")
    await watch.core.claim_one(await a_server(watch.core, default=8))
    assert await watch.look(seconds=600) == []
    assert await watch.look(seconds=1) == [("firing", "stuck_jobs", "default")]
    await watch.core.tick()
    assert await watch.core.one("select reason from fairlane.dead_letter") == "stuck"
    assert await watch.look(seconds=899) == []
    assert await watch.states("stuck_jobs") == {"default": "firing"}
    await watch.look(seconds=1)
    assert await watch.look(seconds=31) == [("resolved", "stuck_jobs", "default")]


async def test_a_tenant_at_its_limit_is_told_by_name(watch: Watch) -> None:
    await watch.only("tenant_limit")
    await watch.core.limit_tenant("acme", max_running=1)
    await watch.core.flood("acme", "a.task", 3)
    await watch.core.claim(await a_server(watch.core, default=8), 8)
    await watch.look()
    assert await watch.look(seconds=60) == [("firing", "tenant_limit", "acme")]


async def test_a_worker_that_stopped_answering_fires_until_it_is_back(watch: Watch) -> None:
    await watch.only("worker_lost")
    worker = await a_server(watch.core, lease=15, default=8)
    name = await watch.core.one("select name from fairlane.worker where id = $1", worker)
    assert await watch.look(seconds=14) == []
    assert await watch.look(seconds=1) == [("firing", "worker_lost", name)]
    await watch.core.tick()
    assert await watch.look(seconds=10) == []
    await watch.core.send(calls.register_worker(uuid4(), name, {"default": 8}, lease_seconds=900))
    await watch.look(seconds=1)
    assert await watch.look(seconds=30) == [("resolved", "worker_lost", name)]


async def test_a_worker_that_signs_off_is_no_alert(watch: Watch) -> None:
    await watch.only("worker_lost")
    await watch.core.send(calls.stop_worker(await a_server(watch.core, lease=15, default=8)))
    assert await watch.look(seconds=60) == []


async def test_a_late_scheduler_fires_and_one_that_nobody_needs_does_not(watch: Watch) -> None:
    await watch.only("scheduler_late")
    await watch.look()
    assert await watch.look(seconds=600) == []
    await watch.core.send(calls.emit([{"tenant": "acme", "name": "folder.updated"}]))
    assert await watch.look(seconds=61) == []
    assert await watch.look(seconds=30) == [("firing", "scheduler_late", "events")]


async def test_a_tenant_that_gets_less_than_half_of_its_share_starves(watch: Watch) -> None:
    await watch.only("tenant_starved")
    for tenant in ("acme", "globex"):
        if tenant != "acme":
            await watch.core.a_tenant(tenant)
        await watch.core.flood(tenant, "a.task", 20)
    worker = await a_server(watch.core, default=8)
    await watch.core.sweep()
    leases = await watch.core.claim(worker, 8)
    mine = [lease for lease in leases if lease.tenant == "acme"]
    assert len(mine) == 4
    await watch.look()
    assert await watch.look(seconds=601) == []
    # Its jobs end and others get the slots: what fairness would never do.
    await watch.core.finish(*mine)
    await watch.core.fetch(
        "update fairlane.share set vtime = 1e9 where tenant_id = "
        "(select id from fairlane.tenant where slug = 'acme')"
    )
    assert {lease.tenant for lease in await watch.core.claim(worker, 4)} == {"globex"}
    await watch.look()
    assert await watch.states("tenant_starved") == {"acme/default": "pending"}
    assert await watch.look(seconds=600) == [("firing", "tenant_starved", "acme/default")]


async def test_a_tenant_that_its_own_limit_keeps_waiting_does_not_starve(watch: Watch) -> None:
    await watch.only("tenant_starved")
    await watch.core.limit_tenant("acme", max_running=1)
    await watch.core.flood("acme", "a.task", 20)
    await watch.core.claim(await a_server(watch.core, default=8), 8)
    await watch.look()
    assert await watch.look(seconds=700) == []


async def test_work_that_does_not_move_fires_and_a_start_ends_it(watch: Watch) -> None:
    await watch.only("not_moving")
    worker = await a_server(watch.core, default=8)
    await watch.core.flood("acme", "a.task", 3)
    await watch.core.sweep()
    assert await watch.look() == []
    assert await watch.look(seconds=300) == []
    assert await watch.look(seconds=1) == [("firing", "not_moving", "default")]
    await watch.core.claim_one(worker)
    await watch.look(seconds=1)
    assert await watch.look(seconds=30) == [("resolved", "not_moving", "default")]


async def test_a_queue_with_every_slot_taken_is_busy_and_not_stuck(watch: Watch) -> None:
    await watch.only("not_moving")
    worker = await a_server(watch.core, default=1)
    await watch.core.flood("acme", "a.task", 3)
    await watch.core.claim_one(worker)
    await watch.look()
    assert await watch.look(seconds=590) == []


async def test_due_work_without_a_worker_fires(watch: Watch) -> None:
    await watch.only("no_worker")
    await a_server(watch.core, bulk=1)
    await watch.core.enqueue("acme", "a.task")
    await watch.core.sweep()
    await watch.look()
    assert await watch.look(seconds=120) == [("firing", "no_worker", "default")]
    await a_server(watch.core, default=1)
    await watch.look(seconds=1)
    assert await watch.look(seconds=30) == [("resolved", "no_worker", "default")]


async def test_a_paused_queue_is_no_alert(watch: Watch) -> None:
    await watch.core.enqueue("acme", "a.task")
    await watch.core.sweep()
    await watch.core.send(calls.pause_queue("default"))
    await watch.look()
    assert await watch.look(seconds=3600) == []


async def test_an_old_transaction_fires(watch: Watch, database: str) -> None:
    await watch.only("vacuum_held")
    report = await asyncpg.connect(database)
    try:
        await report.execute("begin")
        await report.execute("select 1")
        assert await watch.look(seconds=1700) == []
        assert await watch.look(seconds=200) == [("firing", "vacuum_held", "database")]
    finally:
        await report.close()


async def test_a_broken_promise_fires(watch: Watch) -> None:
    await watch.only("broken_promise")
    await watch.core.enqueue("acme", "a.task")
    await watch.core.claim_one(await a_server(watch.core, default=8))
    await watch.core.fetch("update fairlane.gate set running = 7")
    await watch.core.fetch("select * from fairlane.check_promises(every => 0)")
    assert await watch.look() == [("firing", "broken_promise", "gate_counts")]


async def test_a_fault_that_everybody_has_is_told_for_200(watch: Watch) -> None:
    await watch.only("tenant_limit", for_seconds=0, channels=["log"])
    await watch.core.fetch(
        "insert into fairlane.tenant (slug, plan, max_running) "
        "select 't' || n, 'pro', 0 from generate_series(1, 300) n"
    )
    await watch.core.enqueue_many(
        [{"tenant": f"t{n}", "definition": "a.task"} for n in range(1, 301)]
    )
    worker = await a_server(watch.core, default=8)
    while await watch.core.one("select count(*) from fairlane.lane where state = 'blocked'") < 300:
        await watch.core.claim(worker, 8)
    told = await watch.look()
    for _ in range(3):
        told += await watch.look(seconds=5)
    assert len(set(told)) == 200
    # The same ones stay: nobody comes and goes by the limit.
    assert await watch.look(seconds=5) == []


async def test_where_everything_breaks_at_once_each_look_tells_a_part(watch: Watch) -> None:
    """One look told all, took too long, was canceled, and so told nobody of anything."""
    await watch.only("worker_lost", cooldown_seconds=600_000)
    await watch.core.fetch(
        "insert into fairlane.worker (id, name, queues, lease_seconds, lease_expires_at, state,"
        " started_at, last_seen_at) select gen_random_uuid(), 'w' || n, '{}', 15,"
        " fairlane.clock() - interval '1 s', 'live', fairlane.clock(), fairlane.clock()"
        " from generate_series(1, 300) n"
    )
    told = [await watch.look(5) for _ in range(5)]
    assert [len(news) for news in told] == [50, 50, 50, 50, 0]
    assert len({news for each in told for news in each}) == 200

    await watch.core.fetch("update fairlane.worker set state = 'stopped'")
    await watch.look(0)
    ends = [await watch.look(600)] + [await watch.look(5) for _ in range(4)]
    assert [{event for event, _, _ in news} for news in ends] == [{"resolved"}] * 4 + [set()]
    assert len({news for each in ends for news in each}) == 200
