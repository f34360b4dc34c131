"""Any verbs in any order: the database does what a simple model does, and its books balance.

The default run takes the same examples each time; FAIRLANE_TEST_EXAMPLES=2000 looks for new ones.
"""

import os
from collections.abc import Coroutine
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fairlane.core import calls
from fairlane.errors import LeaseLost, WrongState
from fairlane.ids import uuid7
from support.cluster import Cluster
from support.core import Lease
from support.model import DELAYS, LIVE, MAX_ATTEMPTS, Limits, Model, ModelJob
from support.stage import KINDS, QUEUES, TENANTS, Stage, requests

EXAMPLES = int(os.environ.get("FAIRLANE_TEST_EXAMPLES", "0"))
# Shrinking takes minutes: it is for those who look for something.
PHASES = [Phase.explicit, Phase.generate] + ([Phase.shrink] if EXAMPLES else [])
LEASE_SECONDS = 90

PLACES = """
select id, status, attempt, forgiven, lost, worker_id, replays from fairlane.job
union all
select id, 'dead_letter', attempt, forgiven, lost, worker_id, replays from fairlane.dead_letter
 where status <> 'retried'
union all
select id, status, attempt, forgiven, lost, worker_id, replays from fairlane.history
"""

T = TypeVar("T")
numbers = st.integers(0, 1000)
tenants = st.sampled_from(sorted(TENANTS))
ends = st.lists(
    st.tuples(
        st.sampled_from(
            ("finish", "finish", "fail", "give up", "snooze", "bounce", "hand back", "canceled")
        ),
        numbers,
    ),
    max_size=5,
)


class Machine(RuleBasedStateMachine):
    stage: Stage

    def __init__(self) -> None:
        super().__init__()
        self.run, self.core = self.stage.run, self.stage.core
        self.leases: list[Lease] = []
        self.open: list[ModelJob] | None = None
        # Kinds that got their first limit or lost their last one: their jobs change lanes.
        self.moving: set[str] = set()
        self.ticked_at: datetime | None = None

    @initialize(items=st.lists(requests, min_size=3, max_size=10))
    def begin(self, items: list[dict[str, Any]]) -> None:
        self.stage.empty()
        self.model = Model(self.stage.clock.freeze(), tenant_limits={**TENANTS})
        for kind, limits in KINDS.items():
            self._define(kind, limits)
        self.workers = [self._a_worker() for _ in range(2)]
        self.enqueue(items, 0, None)

    def _define(self, kind: str, limits: Limits) -> None:
        fields = {"max_attempts": MAX_ATTEMPTS, "retry_delays": DELAYS, "timeout_seconds": 10**6}
        self.run(self.core.a_definition(kind, **fields, **asdict(limits)))
        self.model.kind_limits[kind] = limits

    def _a_worker(self) -> UUID:
        worker = self.run(self.core.a_worker(LEASE_SECONDS))
        self.model.leases_end[worker] = self.model.now + timedelta(seconds=LEASE_SECONDS)
        return worker

    # Producers -------------------------------------------------------------

    @rule(
        items=st.lists(requests, min_size=1, max_size=5),
        delay=st.sampled_from((0, 0, 0, 6)),
        dedupe=st.sampled_from((None, None, "d")),
    )
    def enqueue(self, items: list[dict[str, Any]], delay: int, dedupe: str | None) -> None:
        jobs = [self._request(item, delay, dedupe) for item in items]
        answers = self.run(self.core.enqueue_many([sent for _, sent in jobs]))
        for (job, _), answer in zip(jobs, answers, strict=True):
            twin = self.model.live_with(job.tenant, job.dedupe)
            expected = (twin.id, True) if twin else (job.id, False)
            assert (answer["id"], answer["deduplicated"]) == expected
            if not twin:
                self.model.jobs[job.id] = job

    def _request(
        self, item: dict[str, Any], delay: int, dedupe: str | None
    ) -> tuple[ModelJob, dict[str, Any]]:
        due = self.model.now + timedelta(seconds=delay)
        job = ModelJob(
            uuid7(),
            item["tenant"],
            item["definition"],
            item["queue"],
            item["concurrency_key"],
            dedupe,
            item["priority"],
            due,
            "scheduled" if delay else "queued",
        )
        sent = item | {"id": job.id, "dedupe_key": dedupe, "resend": False}
        return job, sent | ({"scheduled_for": due} if delay else {})

    @rule(
        items=st.lists(requests, min_size=1, max_size=3),
        delay=st.sampled_from((0, 6)),
        commit=st.booleans(),
    )
    def enqueue_and_stay_open(self, items: list[dict[str, Any]], delay: int, commit: bool) -> None:
        """The transaction of last time ends, another begins."""
        self._close(commit)
        jobs = [self._request(item, delay, None) for item in items]
        self.run(self.stage.slow.conn.execute("begin"))
        self.run(self.stage.slow.enqueue_many([sent for _, sent in jobs]))
        self.open = [job for job, _ in jobs]

    def _close(self, commit: bool) -> None:
        if self.open is not None:
            self.run(self.stage.slow.conn.execute("commit" if commit else "rollback"))
            if commit:
                self.model.jobs |= {job.id: job for job in self.open}
            self.open = None

    # Workers ---------------------------------------------------------------

    @rule(
        which=numbers,
        slots=st.sampled_from((1, 2, 5, 20)),
        queue=st.sampled_from(QUEUES),
        beats=st.booleans(),
        ends=ends,
    )
    def work(
        self, which: int, slots: int, queue: str, beats: bool, ends: list[tuple[str, int]]
    ) -> None:
        worker = self._pick(self.workers, which)
        if not self.model.is_alive(worker):
            for refused in (self.core.claim(worker, slots, queue), self.core.heartbeat(worker)):
                with pytest.raises(LeaseLost):
                    self.run(refused)
            self.workers.remove(worker)
            self.workers.append(worker := self._a_worker())
        if beats:
            self._heartbeat(worker)
        assert len(self._take(worker, slots, queue)) <= slots
        self.every_job_is_where_the_model_says()
        if self.leases:
            self._end_attempts(ends)

    @rule(which=numbers, ends=ends)
    def work_on(self, which: int, ends: list[tuple[str, int]]) -> None:
        """Rules are drawn by lot, and work is what there should be most of."""
        self.work(which, 3, "default", True, ends)

    def _take(self, worker: UUID, slots: int, queue: str, again: int = 5) -> list[Lease]:
        leases = self.run(self.core.claim(worker, slots, queue))
        passed_over = {job.id: job for job in self.model.in_state("queued")}
        for lease in leases:
            job = passed_over.pop(lease.job_id)
            assert job.queue == queue
            assert self.model.may_start(job), f"{job} may not start"
            self.model.start(job, worker)
            assert (lease.attempt, lease.counted) == (job.attempt, job.counted)
        for lease in leases:
            job = self.model.jobs[lease.job_id]
            for other in passed_over.values():
                assert (
                    other.line != job.line
                    or other.place_in_line > job.place_in_line
                    or job.kind in self.moving
                )
        self.leases += leases
        if not leases and any(self._should_start(job, queue) for job in passed_over.values()):
            # Its place may have been offered to a lane that did not take it: the next tick offers
            # it to another.
            assert again, "a slot stayed empty"
            self._tick()
            return self._take(worker, slots, queue, again - 1)
        return leases

    def _should_start(self, job: ModelJob, queue: str) -> bool:
        """Lanes whose minute is over are let go by the tick, not by the claim."""
        paced = self.model.kind_limits[job.kind].starts_per_minute is not None
        return (
            job.queue == queue
            and self.model.may_start(job)
            and (not paced or self.ticked_at == self.model.now)
        )

    def _heartbeat(self, worker: UUID) -> None:
        held = {row["job_id"]: row["attempt"] for row in self.run(self.core.heartbeat(worker))}
        running = self.model.in_state("running")
        assert held == {job.id: job.attempt for job in running if job.worker == worker}
        self.model.leases_end[worker] = self.model.now + timedelta(seconds=LEASE_SECONDS)

    def _end_attempts(self, ends: list[tuple[str, int]]) -> None:
        for how, pick in ends:
            lease = self._a_lease(pick)
            if how == "finish":
                self._finish(lease, pick % 3)
            elif how == "hand back":
                self._hand_back(lease)
            else:
                self._end(lease, how, 3 * (pick % 2))

    def _a_lease(self, pick: int) -> Lease:
        """Mostly one that runs; or one whose job runs again; or any that there ever was."""
        held = [lease for lease in self.leases if self.model.holds(lease)]
        running = {job.id for job in self.model.in_state("running")}
        stale = [lease for lease in self.leases if lease.job_id in running and lease not in held]
        choices = {0: self.leases, 1: stale}.get(pick % 5, held)
        return self._pick(choices or self.leases, pick)

    def _finish(self, first: Lease, more: int) -> None:
        """Several at once, and some of them perhaps long gone."""
        others = {
            lease.job_id: lease
            for lease in self.leases
            if lease.worker == first.worker and lease.job_id != first.job_id
        }
        leases = [first, *others.values()][: 1 + more]
        if not self.model.is_alive(first.worker):
            with pytest.raises(LeaseLost):
                self.run(self.core.finish(*leases))
            return
        held = [lease.job_id for lease in leases if self.model.holds(lease)]
        assert sorted(self.run(self.core.finish(*leases))) == sorted(held)
        for job in held:
            self.model.end(self.model.jobs[job], "succeeded")

    def _hand_back(self, lease: Lease) -> None:
        if not self.model.is_alive(lease.worker):
            with pytest.raises(LeaseLost):
                self.run(self.core.hand_back(lease))
            return
        held = self.model.holds(lease)
        assert self.run(self.core.hand_back(lease)) == held
        if held:
            self._ended(self.model.jobs[lease.job_id], "hand back", 0)

    def _end(self, lease: Lease, how: str, seconds: int) -> None:
        job = self.model.jobs[lease.job_id]
        if not self.model.holds(lease):
            with pytest.raises(LeaseLost):
                self.run(self._verb(lease, how, seconds))
        elif how == "canceled" and not job.asked:
            with pytest.raises(WrongState):
                self.run(self._verb(lease, how, seconds))
        else:
            self.run(self._verb(lease, how, seconds))
            self._ended(job, how, seconds)

    def _verb(self, lease: Lease, how: str, seconds: int) -> Coroutine[Any, Any, Any]:
        match how:
            case "snooze":
                return self.core.snooze(lease, seconds)
            case "bounce":
                return self.core.value(calls.bounce(lease.worker, lease.job_id, lease.attempt))
            case "canceled":
                return self.core.canceled(lease)
            case _:
                return self.core.fail(lease, final=how == "give up")

    def _ended(self, job: ModelJob, how: str, seconds: float) -> None:
        match how:
            case "fail" | "give up":
                self.model.fail(job, final=how == "give up")
            case _ if job.asked:
                self.model.end(job, "canceled")
            case "bounce":
                self.model.put_back(job, min(30, 0.25 * 2**job.forgiven), forgive=True)
            case _:
                self.model.put_back(job, seconds, forgive=True)

    # People ----------------------------------------------------------------

    @precondition(lambda self: self.model.jobs)
    @rule(pick=numbers)
    def send_again_then_cancel_or_replay(self, pick: int) -> None:
        job = self._pick([*self.model.jobs.values()], pick)
        answer = self.run(self.core.ask(job.tenant, job.kind, id=job.id, queue=job.queue))
        assert (answer["id"], answer["status"]) == (job.id, job.state)
        if pick % 3 and job.state in LIVE:
            return
        if job.state in ("scheduled", "queued"):
            assert self.run(self.core.cancel(job.id)) == self.model.end(job, "canceled")
        elif job.state == "running":
            assert self.run(self.core.cancel(job.id)) == "running"
            job.asked = True
        elif job.state == "dead_letter" and not self.model.live_with(job.tenant, job.dedupe):
            self.run(self.core.replay(job.id))
            self.model.replay(job)
        else:
            for verb in (self.core.cancel(job.id), self.core.replay(job.id)):
                with pytest.raises(WrongState):
                    self.run(verb)

    @rule(tenant=tenants, limit=st.sampled_from(("pause", "pause", None, 0, 1, 2, 3)))
    def change_tenant(self, tenant: str, limit: Any) -> None:
        if limit == "pause":
            self._pause_or_resume(tenant)
        else:
            self.run(self.core.limit_tenant(tenant, max_running=limit))
            self.model.tenant_limits[tenant] = limit

    def _pause_or_resume(self, tenant: str) -> None:
        paused = tenant in self.model.paused
        change = calls.resume_tenant(tenant) if paused else calls.pause_tenant(tenant)
        self.run(self.core.send(change))
        self.model.paused ^= {tenant}

    @rule(
        kind=st.sampled_from(("plain", "few", "each")),
        most=st.sampled_from((None, 1, 2, 3)),
        each=st.sampled_from((None, 1, 2)),
    )
    def change_definition(self, kind: str, most: int | None, each: int | None) -> None:
        limits = Limits(max_running=most, max_running_per_tenant=each)
        if (limits == Limits()) != (self.model.kind_limits[kind] == Limits()):
            self.moving.add(kind)
        self._define(kind, limits)

    # Time ------------------------------------------------------------------

    @rule(seconds=st.sampled_from((1, 6, 20, 55, 62, 4000)), ticks=st.booleans())
    def time_passes(self, seconds: int, ticks: bool) -> None:
        self.model.now = self.stage.clock.advance(seconds=seconds)
        if ticks:
            self._tick()
        if seconds > 3600:
            # Lanes of keys that nobody has used for an hour go.
            self.run(self.core.fetch("select fairlane.prune()"))

    def _tick(self) -> None:
        # What is due waits for a sweep to have made its lane: at worst for the next tick.
        self.run(self.core.sweep())
        self.run(self.core.tick())
        self.model.rescue()
        self.model.promote()
        self.ticked_at = self.model.now

    # What always holds -----------------------------------------------------

    @invariant()
    def the_books_balance(self) -> None:
        self.run(self.core.assert_books_balance())

    @invariant()
    def whose_turn_it_is_is_looked_for(self) -> None:
        assert self.run(self.core.before_the_floor()) == []

    @invariant()
    def every_job_is_where_the_model_says(self) -> None:
        rows = self.run(self.core.fetch(PLACES))
        assert len(rows) == len(self.model.jobs)
        assert {row[0]: tuple(row)[1:] for row in rows} == {
            job.id: job.shown() for job in self.model.jobs.values()
        }

    def teardown(self) -> None:
        self._close(commit=True)
        if hasattr(self, "model"):
            self._drain()

    def _drain(self) -> None:
        """Once nobody is paused and every limit lets something through, everything ends."""
        for tenant in [*self.model.paused]:
            self._pause_or_resume(tenant)
        for tenant, limit in self.model.tenant_limits.items():
            if limit == 0:
                self.change_tenant(tenant, 1)
        self.time_passes(LEASE_SECONDS, False)
        for _ in range(5 + len(self.model.in_state(*LIVE))):
            if not self.model.in_state(*LIVE):
                break
            self.time_passes(62, True)
            worker = self._a_worker()
            for queue in QUEUES:
                while leases := self._take(worker, 20, queue):
                    self.run(self.core.finish(*leases))
                    for lease in leases:
                        self.model.end(self.model.jobs[lease.job_id], "succeeded")
        self.every_job_is_where_the_model_says()
        self.the_books_balance()
        assert not self.model.in_state(*LIVE)

    @staticmethod
    def _pick(things: list[T], number: int) -> T:
        return things[number % len(things)]


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES else 180)
def test_the_database_does_what_the_model_does(cluster: Cluster, template: str) -> None:
    with cluster.fresh(template) as url, Stage.on(url) as stage:
        run_state_machine_as_test(
            type("MachineOnStage", (Machine,), {"stage": stage}),
            settings=settings(
                max_examples=EXAMPLES or 80,
                stateful_step_count=50,
                derandomize=not EXAMPLES,
                database=None,
                deadline=None,
                suppress_health_check=[*HealthCheck],
                print_blob=False,
                phases=PHASES,
            ),
        )
