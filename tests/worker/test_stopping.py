"""Timeouts, cancels and shutdowns: ask, wait, kill; nothing survives, nothing is lost."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.clock import Clock
from support.workers import Fleet, until


def alive(pid: str) -> bool:
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
        return told.rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("key", ["slow", "slow_process"])
def test_a_job_that_runs_out_of_time_is_stopped_and_tried_again(fleet: Fleet, key: str) -> None:
    fleet.worker()
    job = fleet.enqueue(key)
    fleet.until_status(job, "scheduled")
    outcome = fleet.ask("select outcome from fairlane.attempt where job_id = %s", job)
    assert outcome == "timeout"
    until(lambda: not any(alive(pid) for pid in fleet.runs("pids")), "no process survives")


def test_cancel_reaches_a_running_job_within_seconds(fleet: Fleet) -> None:
    fleet.worker()
    for key in ("wait_for", "cooperative"):
        before = len(fleet.runs())
        job = fleet.enqueue(key)
        until(lambda n=before: len(fleet.runs()) > n, "it runs")  # type: ignore[misc]
        assert fleet.ask("select fairlane.cancel(%s)", job) == "running"
        # Also the thread that returned when it was asked: nobody knows what it left undone.
        fleet.until_status(job, "canceled", within=5)
    fleet.assert_books_balance()


@pytest.mark.parametrize("key", ["listens", "listens_apart"])
def test_a_coroutine_that_asks_whether_it_is_wanted_may_tidy_up(fleet: Fleet, key: str) -> None:
    fleet.worker()
    job = fleet.enqueue(key)
    until(lambda: fleet.runs(), "it runs")
    fleet.ask("select fairlane.cancel(%s)", job)
    fleet.until_status(job, "canceled", within=8)
    assert fleet.runs("ends") == ["tidied up"]


def test_a_coroutine_that_has_asked_and_goes_on_is_cancelled_all_the_same(fleet: Fleet) -> None:
    fleet.worker()
    job = fleet.enqueue("looks_away")
    until(lambda: fleet.runs(), "it runs")
    fleet.ask("select fairlane.cancel(%s)", job)
    fleet.until_status(job, "canceled", within=8)


def test_a_task_that_breaks_off_when_its_time_is_up_has_not_succeeded(fleet: Fleet) -> None:
    fleet.worker()
    job = fleet.enqueue("gives_in")
    fleet.until_status(job, "scheduled")
    assert fleet.ask("select outcome from fairlane.attempt where job_id = %s", job) == "timeout"


@pytest.mark.fault
def test_sigterm_ends_a_worker_whose_task_cannot_be_stopped(fleet: Fleet) -> None:
    """It handed the job back and stayed: the job ran twice, here and there, for as long."""
    worker = fleet.worker(FAIRLANE_GRACE_SECONDS="0.2")
    job = fleet.enqueue("deaf")
    until(lambda: fleet.runs(), "it runs")

    assert worker.stop() == 0

    assert fleet.status(job) == "queued"
    assert fleet.ask("select attempt_count from fairlane.jobs where id = %s", job) == 0
    fleet.assert_books_balance()


@pytest.mark.fault
def test_a_job_that_ignores_cancel_is_killed_with_its_daemons(fleet: Fleet) -> None:
    fleet.worker()
    job = fleet.enqueue("stubborn")
    until(lambda: len(fleet.runs("pids")) == 2, "it runs, and so does its daemon")
    assert all(alive(pid) for pid in fleet.runs("pids"))

    fleet.ask("select fairlane.cancel(%s)", job)

    fleet.until_status(job, "canceled", within=10)
    assert not any(alive(pid) for pid in fleet.runs("pids"))


@pytest.mark.fault
def test_a_daemon_that_a_finished_job_left_behind_is_gone(fleet: Fleet) -> None:
    fleet.worker()
    job = fleet.enqueue("leaves_daemon")
    fleet.until_status(job, "succeeded")
    assert fleet.runs("pids")
    assert not any(alive(pid) for pid in fleet.runs("pids"))


@pytest.mark.fault
def test_a_killed_worker_takes_its_processes_with_it(fleet: Fleet) -> None:
    worker = fleet.worker()
    fleet.enqueue("stubborn")
    until(lambda: len(fleet.runs("pids")) == 2, "it runs, and so does its daemon")
    worker.kill()
    until(lambda: not any(alive(pid) for pid in fleet.runs("pids")), "no process survives")


def test_sigterm_lets_jobs_finish_and_ends_with_status_0(fleet: Fleet) -> None:
    worker = fleet.worker("default=2")
    running = [fleet.enqueue("wait_for") for _ in range(2)]
    waiting = fleet.enqueue("echo")
    until(lambda: len(fleet.runs()) == 2, "both run")

    worker.signal(signal.SIGTERM)
    worker.until_said("stopping")
    until(lambda: fleet.ask("select state from fairlane.worker") == "draining", "it says it drains")
    (fleet.folder / "open").touch()

    assert worker.popen.wait(20) == 0
    assert [fleet.status(job) for job in running] == ["succeeded"] * 2
    assert fleet.status(waiting) == "queued"
    assert fleet.ask("select state from fairlane.worker") == "stopped"
    fleet.assert_books_balance()


def test_a_worker_that_is_drained_finishes_what_runs_and_ends_with_status_0(fleet: Fleet) -> None:
    """No grace hurries it: nobody waits for the end of its process."""
    worker = fleet.worker("default=2", FAIRLANE_GRACE_SECONDS="0.2", FAIRLANE_LEASE_SECONDS="3600")
    running = [fleet.enqueue("wait_for") for _ in range(2)]
    until(lambda: len(fleet.runs()) == 2, "both run")

    fleet.ask("select fairlane.drain_worker(id) from fairlane.worker")
    assert fleet.ask("select state from fairlane.workers") == "draining", "as asked for"
    worker.until_said("asked to drain: 2 jobs still run")
    until(lambda: fleet.ask("select state from fairlane.worker") == "draining", "it says so itself")
    waiting = fleet.enqueue("echo")
    (fleet.folder / "open").touch()

    assert worker.popen.wait(20) == 0
    assert [fleet.status(job) for job in running] == ["succeeded"] * 2
    assert fleet.status(waiting) == "queued"
    assert fleet.ask("select state from fairlane.worker") == "stopped"
    fleet.assert_books_balance()


def test_sigterm_hurries_a_worker_that_drains(fleet: Fleet) -> None:
    worker = fleet.worker(FAIRLANE_GRACE_SECONDS="0.2")
    job = fleet.enqueue("wait_for")
    until(lambda: fleet.runs(), "it runs")
    fleet.ask("select fairlane.drain_worker(id) from fairlane.worker")
    worker.until_said("asked to drain: 1 jobs still run")

    assert worker.stop() == 0

    assert fleet.status(job) == "queued"
    fleet.assert_books_balance()


def test_the_supervisor_starts_no_other_for_a_worker_that_was_drained(fleet: Fleet) -> None:
    supervisor = fleet.worker(arguments=("--processes", "2"))
    until(lambda: fleet.ask("select count(*) from fairlane.worker") == 2, "two workers live")
    drain = "select fairlane.drain_worker(id) from fairlane.worker where state = 'live' limit 1"
    fleet.ask(drain)
    supervisor.until_said("was drained; it stays out")
    assert fleet.ask("select count(*) from fairlane.worker") == 2
    fleet.ask(drain)
    assert supervisor.popen.wait(20) == 0, "with the last of them it ends too"
    assert fleet.ask("select count(*) from fairlane.worker where state = 'stopped'") == 2


def test_what_does_not_finish_within_the_grace_is_handed_back_uncounted(fleet: Fleet) -> None:
    worker = fleet.worker(FAIRLANE_GRACE_SECONDS="0.5")
    job = fleet.enqueue("wait_for")
    until(lambda: fleet.runs(), "it runs")

    assert worker.stop() == 0

    assert fleet.status(job) == "queued"
    assert fleet.ask("select attempt_count from fairlane.jobs where id = %s", job) == 0
    fleet.assert_books_balance()
    (fleet.folder / "open").touch()
    fleet.worker()
    fleet.until_status(job, "succeeded")


def test_a_stuck_job_is_parked_while_its_worker_lives(fleet: Fleet, clock: Clock) -> None:
    fleet.worker(FAIRLANE_LEASE_SECONDS="3600")
    job = fleet.enqueue("block_loop")  # timeout 120 s, and deaf to it
    until(lambda: fleet.runs(), "it runs")
    fleet.worker("bulk=1")  # somebody who keeps house
    clock.advance(seconds=241)
    fleet.until_status(job, "dead_letter")
    assert fleet.ask("select reason from fairlane.dead_letter where id = %s", job) == "stuck"
    (fleet.folder / "open").touch()
    # The late outcome of the parked attempt changes nothing.
    fleet.until_status(fleet.enqueue("echo"), "succeeded")
    assert fleet.status(job) == "dead_letter"
    fleet.assert_books_balance()


def test_a_stuck_job_is_stopped_at_once_however_long_the_lease(fleet: Fleet, clock: Clock) -> None:
    """Only what two heartbeats miss is gone, and the second came a third of the lease later."""
    worker = fleet.worker(FAIRLANE_LEASE_SECONDS="3600")
    job = fleet.enqueue("wait_for")  # timeout 300 s
    until(lambda: fleet.runs(), "it runs")
    clock.advance(seconds=601)
    worker.until_said("is told to stop: ")
    assert fleet.status(job) == "dead_letter"


def test_the_supervisor_restarts_a_worker_that_dies(fleet: Fleet) -> None:
    supervisor = fleet.worker(arguments=("--processes", "2"))
    until(lambda: fleet.ask("select count(*) from fairlane.worker") == 2, "two workers live")
    victim = fleet.ask("select pid from fairlane.worker limit 1")
    os.kill(victim, signal.SIGKILL)
    supervisor.until_said("a new one starts")
    until(lambda: fleet.ask("select count(*) from fairlane.worker") == 3, "a third was started")
    assert supervisor.stop() == 0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"app": "no.such.module:app"}, "no.such.module"),
        ({"queues": ("nowhere=1",)}, "nowhere"),
    ],
)
def test_the_supervisor_refuses_at_once_what_no_child_could_run(
    fleet: Fleet, wrong: dict[str, Any], named: str
) -> None:
    supervisor = fleet.worker(
        *wrong.get("queues", ("default=1",)),
        app=wrong.get("app", "worker.tasks:app"),
        arguments=("--processes", "2"),
        ready=False,
    )
    assert supervisor.popen.wait(20) != 0
    assert supervisor.said(named)
    assert not supervisor.said("Traceback")


@pytest.mark.fault
def test_workers_do_not_outlive_a_supervisor_that_is_killed(fleet: Fleet) -> None:
    supervisor = fleet.worker(arguments=("--processes", "2"))
    until(lambda: fleet.ask("select count(*) from fairlane.worker") == 2, "two workers live")
    supervisor.kill()
    until(
        lambda: fleet.ask("select count(*) from fairlane.worker where state = 'stopped'") == 2,
        "both have stopped in good order",
    )
