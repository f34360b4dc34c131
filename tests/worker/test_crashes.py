"""Whatever is killed, stopped or cut: nothing is lost, nothing runs twice without a lost lease."""

import signal
from collections import Counter

import pytest

from support.clock import Clock
from support.workers import Fleet, until

pytestmark = pytest.mark.fault


def test_the_jobs_of_a_killed_worker_run_on_another(fleet: Fleet, clock: Clock) -> None:
    victim = fleet.worker()
    job = fleet.enqueue("wait_for")
    until(lambda: fleet.runs(), "it runs")
    victim.kill()

    fleet.worker()
    (fleet.folder / "open").touch()
    assert fleet.status(job) == "running"  # the lease still holds
    clock.advance(seconds=15)

    fleet.until_status(job, "succeeded", within=5)
    assert [line.split()[1] for line in fleet.runs()] == ["1", "2"]
    assert fleet.ask("select outcome from fairlane.attempt where job_id = %s", job) == "lost"
    fleet.assert_books_balance()


def test_a_zombie_changes_nothing(fleet: Fleet, clock: Clock) -> None:
    """Stopped past its lease, then continued: its job has moved on without it."""
    zombie = fleet.worker()
    job = fleet.enqueue("wait_for", '{"gate": "open"}')
    until(lambda: fleet.runs(), "it runs")
    zombie.signal(signal.SIGSTOP)
    clock.advance(seconds=16)

    heir = fleet.worker()
    until(lambda: len(fleet.runs()) == 2, "the heir runs it")
    zombie.signal(signal.SIGCONT)
    zombie.until_said("the lease is lost")
    assert fleet.status(job) == "running"
    assert fleet.ask("select attempt from fairlane.job where id = %s", job) == 2
    (fleet.folder / "open").touch()

    fleet.until_status(job, "succeeded")
    told = fleet.db.execute(
        "select w.pid from fairlane.history h join fairlane.worker w on w.id = h.worker_id"
        " where h.id = %s",
        [job],
    ).fetchone()
    assert told == (heir.pid,)
    # The zombie starts over under a new id, and works.
    until(
        lambda: (
            fleet.ask(
                "select count(*) from fairlane.worker where pid = %s and state = 'live'", zombie.pid
            )
            == 1
        ),
        "it registered anew",
    )
    heir.stop()
    fleet.until_status(fleet.enqueue("echo"), "succeeded")
    fleet.assert_books_balance()


def test_a_blocked_loop_keeps_its_lease_and_is_named(fleet: Fleet) -> None:
    """Real time: the block is several times as long as the lease."""
    worker = fleet.worker(FAIRLANE_LEASE_SECONDS="2")
    fleet.worker(FAIRLANE_LEASE_SECONDS="2")  # would take it over
    job = fleet.enqueue("block_loop")
    until(lambda: fleet.runs(), "it runs")
    until(
        lambda: any(p.said("the event loop has been blocked for 4 s") for p in fleet.processes),
        "the block is noticed, twice as long as the lease",
    )
    beats = fleet.ask("select max(last_seen_at) from fairlane.worker")
    until(lambda: fleet.ask("select min(last_seen_at) from fairlane.worker") > beats, "it beats on")
    (fleet.folder / "open").touch()
    fleet.until_status(job, "succeeded")
    assert len(fleet.runs()) == 1
    assert any(p.said("tasks.py") and p.said("block_loop") for p in fleet.processes)
    assert worker.popen.poll() is None


# Of all workers but the one that holds the job.
LEASES_OUTLAST = """
select coalesce(bool_and(lease_expires_at > fairlane.clock() + interval '4 seconds'), true)
  from fairlane.worker
 where state in ('live', 'draining')
   and id is distinct from (select worker_id from fairlane.job where id = %s)
"""


def test_a_job_that_kills_its_worker_is_parked_and_the_others_go_on(
    fleet: Fleet, clock: Clock
) -> None:
    fleet.worker("default=4", arguments=("--processes", "2"), FAIRLANE_LEASE_SECONDS="6")
    poison = fleet.enqueue("kills_worker")
    until(lambda: fleet.runs(), "it ran")
    others = [fleet.enqueue("echo") for _ in range(20)]
    for job in others:
        fleet.until_status(job, "succeeded")

    def parked_in_time() -> bool:
        # What is claimed runs first: time that races on would take it from a live worker. Nobody
        # claims it between the look and the step: it is locked. Who is about to has looked at its
        # lease before, which must outlast the step.
        with fleet.db.transaction():
            attempt = fleet.ask("select attempt from fairlane.job where id = %s for update", poison)
            has_run = attempt is None or sum(str(poison) in n for n in fleet.runs()) >= attempt
            if has_run and fleet.ask(LEASES_OUTLAST, poison):
                clock.advance(seconds=3)
        return fleet.status(poison) == "dead_letter"

    until(parked_in_time, "it is parked")
    assert fleet.ask("select reason from fairlane.dead_letter where id = %s", poison) == "lost"
    assert sum(str(poison) in line for line in fleet.runs()) == 2
    fleet.assert_books_balance()


def test_sigterm_under_load_loses_and_doubles_nothing(fleet: Fleet) -> None:
    first = fleet.worker("default=2")
    jobs = [fleet.enqueue("echo") for _ in range(300)]
    until(lambda: len(fleet.runs()) > 30, "it is at work")
    assert first.stop() == 0
    fleet.worker("default=10")
    until(lambda: fleet.ask("select count(*) from fairlane.history") == 300, "all are done")
    assert Counter(line.split()[0] for line in fleet.runs()) == Counter(str(j) for j in jobs)
    fleet.assert_books_balance()


def test_every_connection_cut_under_load_loses_nothing(fleet: Fleet) -> None:
    fleet.worker("default=10")
    jobs = [fleet.enqueue("echo") for _ in range(400)]
    for mark in (50, 150, 250):
        until(lambda n=mark: len(fleet.runs()) > n, "it is at work")  # type: ignore[misc]
        fleet.db.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    until(lambda: fleet.ask("select count(*) from fairlane.history") == 400, "all are done")
    assert set(Counter(line.split()[0] for line in fleet.runs())) == {str(j) for j in jobs}
    fleet.assert_books_balance()


def test_a_heartbeat_whose_connection_is_cut_goes_on(fleet: Fleet) -> None:
    """The thread died of it: a busy worker never noticed, and its job ran twice."""
    fleet.worker("default=1", FAIRLANE_LEASE_SECONDS="3")
    job = fleet.enqueue("wait_for")
    until(lambda: fleet.runs(), "it runs")
    fleet.ask(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and application_name = 'fairlane heartbeat'"
    )
    cut = fleet.ask("select clock_timestamp()")
    until(lambda: fleet.ask("select min(last_seen_at) from fairlane.worker") > cut, "it beats on")
    (fleet.folder / "open").touch()
    fleet.until_status(job, "succeeded")
    assert len(fleet.runs()) == 1


def test_an_idle_worker_asks_little(fleet: Fleet) -> None:
    """At most three statements a second, housekeeping included. Over some seconds: what comes every
    five seconds, or fifteen, may come together with two polls in one, and did, thirteen in four."""
    seconds = 15
    fleet.worker("critical=4", "default=8", "bulk=2")
    until(lambda: fleet.ask("select holder from fairlane.leader"), "it leads")

    begun = fleet.ask("select clock_timestamp()")
    seen: set[tuple[int, object]] = set()

    def sample() -> bool:
        for row in fleet.db.execute(
            "select pid, query_start from pg_stat_activity where query_start > %s"
            " and datname = current_database()"
            " and application_name like 'fairlane%%'",
            [begun],
        ).fetchall():
            seen.add(row)
        return bool(
            fleet.ask("select clock_timestamp() - %s > make_interval(secs => %s)", begun, seconds)
        )

    until(sample, "the time has passed", within=2 * seconds)
    assert seconds <= len(seen) <= seconds * 3
