"""A worker runs what it knows, and reports what became of it."""

import json
import os
from pathlib import Path

import pytest
import uvloop

from fairlane.executors.process import ProcessExecutor
from fairlane.outcome import Done
from support.attempts import an_attempt
from support.clock import Clock
from support.workers import Fleet, until


def result(fleet: Fleet, job: object) -> object:
    return fleet.ask("select result from fairlane.history where id = %s", job)


def test_a_coroutine_a_thread_and_a_process_all_answer(fleet: Fleet) -> None:
    fleet.worker("default=4")
    first = fleet.enqueue("echo", '{"text": "hello"}')
    second = fleet.enqueue("in_thread", '{"n": 21}')
    third = fleet.enqueue("in_process", '{"n": 4}')

    for job in (first, second, third):
        fleet.until_status(job, "succeeded")

    assert result(fleet, first) == {"text": "hello"}
    assert result(fleet, second) == 42
    assert result(fleet, third)["n"] == 8  # type: ignore[index]
    assert result(fleet, third)["pid"] != fleet.processes[0].pid  # type: ignore[index]
    fleet.assert_books_balance()


def test_a_failed_attempt_comes_back_after_the_listed_delays_and_then_waits_for_a_person(
    fleet: Fleet, clock: Clock
) -> None:
    fleet.worker()
    job = fleet.enqueue("fails")

    for attempt, delay in ((1, 60), (2, 300)):
        fleet.until_status(job, "scheduled")
        due = fleet.ask(
            "select scheduled_for - finished_at from fairlane.job"
            " join fairlane.attempt on job_id = id and attempt.attempt = %s where id = %s",
            attempt,
            job,
        )
        assert abs(due.total_seconds() - delay) < 1
        clock.advance(seconds=delay + 1)
        until(lambda n=attempt: len(fleet.runs()) > n, "the next attempt ran")  # type: ignore[misc]

    fleet.until_status(job, "dead_letter")
    assert [line.split()[1] for line in fleet.runs()] == ["1", "2", "3"]
    told = fleet.db.execute(
        "select outcome, error->>'message', error->>'traceback' from fairlane.attempt"
        " where job_id = %s order by attempt",
        [job],
    ).fetchall()
    assert [row[:2] for row in told] == [("failed", "no luck")] * 3
    assert "ValueError" in told[0][2]
    fleet.assert_books_balance()


def test_a_job_that_fails_once_succeeds_when_it_is_tried_again(fleet: Fleet, clock: Clock) -> None:
    fleet.worker()
    job = fleet.enqueue("fails_once")
    fleet.until_status(job, "scheduled")
    clock.advance(seconds=61)
    fleet.until_status(job, "succeeded")
    assert result(fleet, job) == "at last"


def test_fail_leaves_no_attempt_and_snooze_costs_none(fleet: Fleet, clock: Clock) -> None:
    fleet.worker()
    hopeless = fleet.enqueue("gives_up")
    fleet.until_status(hopeless, "failed")

    sleepy = fleet.enqueue("snoozes", max_attempts=1)
    fleet.until_status(sleepy, "scheduled")
    clock.advance(seconds=61)
    fleet.until_status(sleepy, "succeeded")
    assert fleet.ask("select attempt_count from fairlane.jobs where id = %s", sleepy) == 1


@pytest.mark.parametrize("how", ["", "_in_thread", "_in_process"])
def test_fail_and_snooze_mean_the_same_when_they_are_returned(fleet: Fleet, how: str) -> None:
    fleet.worker()
    hopeless = fleet.enqueue(f"returns_a_word{how}", '{"word": "fail"}')
    sleepy = fleet.enqueue(f"returns_a_word{how}", '{"word": "snooze"}')

    fleet.until_status(hopeless, "failed")
    fleet.until_status(sleepy, "scheduled")
    assert fleet.ask("select attempt_count from fairlane.jobs where id = %s", sleepy) == 0
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", hopeless)
    assert (error["type"], error["message"]) == ("Fail", "the file is gone")


@pytest.mark.parametrize("how", ["", "_apart"])
def test_what_a_job_enqueues_and_emits_has_its_correlation_id(fleet: Fleet, how: str) -> None:
    fleet.worker()
    job = fleet.enqueue(f"passes_on{how}", correlation_id="c-17")
    fleet.until_status(job, "succeeded")
    child = fleet.ask("select correlation_id from fairlane.jobs where definition_key = 'in_thread'")
    assert child == "c-17"
    assert fleet.ask("select correlation_id from fairlane.event") == "c-17"


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("not_json", "is not JSON"),
        ("huge", "the limit is"),
        ("exits", "3"),
        ("says_nul", "\\x00 and half a character \\ud800"),
        ("stops_iterating", "StopIteration"),
        ("returns_nan", "JSON has no such number"),
        ("eats_memory", "over its limit of 256 MB"),
    ],
)
def test_what_cannot_be_kept_or_run_is_a_failed_attempt_that_says_why(
    fleet: Fleet, key: str, says: str
) -> None:
    fleet.worker()
    job = fleet.enqueue(key)
    fleet.until_status(job, "dead_letter")
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert says in error["message"]
    # The worker is none the worse for it.
    fleet.until_status(fleet.enqueue("echo"), "succeeded")


def test_a_payload_that_cannot_be_read_fails_alone(fleet: Fleet) -> None:
    fleet.worker()
    neighbour = fleet.enqueue("wait_for")
    until(lambda: fleet.runs(), "it runs")
    job = fleet.enqueue("echo", '{"text": 1e5000}', max_attempts=1)
    fleet.until_status(job, "dead_letter")
    (fleet.folder / "open").touch()
    fleet.until_status(neighbour, "succeeded")
    assert fleet.ask("select count(*) from fairlane.worker") == 1


def test_a_job_that_no_worker_knows_waits(fleet: Fleet, clock: Clock) -> None:
    fleet.db.execute('select fairlane.define(\'[{"key": "removed"}]\')')
    fleet.worker()
    job = fleet.enqueue("removed")
    fleet.until_status(job, "scheduled")
    clock.advance(seconds=2)
    until(
        lambda: fleet.ask("select forgiven from fairlane.job where id = %s", job) >= 2,
        "it was tried again",
    )
    assert fleet.ask("select attempt - forgiven from fairlane.job where id = %s", job) == 0
    fleet.until_status(fleet.enqueue("echo"), "succeeded")


@pytest.mark.parametrize("key", ["in_thread", "in_process"])
def test_a_payload_that_does_not_fit_is_parked_unrun_with_its_pointers(
    fleet: Fleet, key: str
) -> None:
    fleet.worker()
    job = fleet.enqueue(key, '{"n": "twelve"}')
    fleet.until_status(job, "dead_letter")
    told = fleet.db.execute(
        "select reason, last_error from fairlane.dead_letter where id = %s", [job]
    ).fetchone()
    assert told is not None
    assert told[0] == "invalid"
    assert [fault["pointer"] for fault in told[1]["errors"]] == ["/n"]
    assert fleet.runs() == []


@pytest.mark.parametrize("how", ["", "_in_thread", "_in_process"])
def test_inside_a_job_the_connection_carries_the_tenant(fleet: Fleet, how: str) -> None:
    fleet.db.execute(
        """
        create table app_rows (tenant text, seen bool);
        insert into app_rows values ('acme'), ('globex');
        alter table app_rows enable row level security;
        alter table app_rows force row level security;
        create policy own on app_rows using (tenant = current_setting('fairlane.tenant', true));
        """
    )
    fleet.worker()
    job = fleet.enqueue(f"tenant_rows{how}", tenant="globex")
    fleet.until_status(job, "succeeded")
    assert result(fleet, job) == ["globex"]


def test_a_blocking_connection_keeps_what_it_did_unless_its_block_raises(fleet: Fleet) -> None:
    fleet.db.execute("create table app_rows (tenant text, seen bool)")
    fleet.db.execute("insert into app_rows values ('acme')")
    fleet.worker()
    job = fleet.enqueue("tenant_rows_in_thread")
    fleet.until_status(job, "succeeded")
    assert fleet.db.execute("select * from app_rows").fetchall() == [("acme", True)]


def test_a_coroutine_that_would_block_its_worker_is_told_what_to_say(fleet: Fleet) -> None:
    fleet.worker()
    job = fleet.enqueue("blocks_by_mistake")
    fleet.until_status(job, "dead_letter")
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert error["message"] == "in a coroutine, it is: async with ctx.connection()"


def test_a_large_payload_reaches_its_task(fleet: Fleet) -> None:
    fleet.worker()
    text = "x" * 200_000
    job = fleet.enqueue("echo", f'{{"text": "{text}"}}')
    fleet.until_status(job, "succeeded")
    assert result(fleet, job) == {"text": text}


# In a process of its own ----------------------------------------------------------------------


@pytest.mark.parametrize("megabytes", [1, 20])
def test_a_task_that_says_too_much_has_its_result_none_the_less(
    fleet: Fleet, megabytes: int
) -> None:
    """A line of 70 MB was the last that its worker heard of it: the task had failed."""
    worker = fleet.worker()
    job = fleet.enqueue("shouts", json.dumps({"megabytes": megabytes}))
    fleet.until_status(job, "succeeded")
    assert result(fleet, job) == "said"
    lines = fleet.db.execute(
        "select message, fields from fairlane.log_line where job_id = %s order by seq", [job]
    ).fetchall()
    assert lines[0][0].startswith("begin xxx")
    assert "the limit is" in lines[0][1]["omitted"]
    assert worker.log.stat().st_size < 500_000


def test_a_task_that_gives_up_at_length_is_heard(fleet: Fleet) -> None:
    fleet.worker()
    job = fleet.enqueue("gives_up_loudly")
    fleet.until_status(job, "failed")
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert error["type"] == "Fail"
    assert error["message"].startswith("no no no")
    assert len(error["message"]) < 11_000


def test_what_it_logs_has_no_secret_and_the_form_of_the_workers_log(fleet: Fleet) -> None:
    worker = fleet.worker(FAIRLANE_LOG_FORMAT="json")
    job = fleet.enqueue("tells_secrets_apart", '{"key": "canary-9f27c1"}')
    fleet.until_status(job, "dead_letter")
    worker.until_said("the.users.own")
    lines = [json.loads(line) for line in worker.log.read_text().splitlines()]
    said = {line["logger"]: line for line in lines}
    assert said["the.users.own"]["message"] == "the key is [redacted]"
    assert said["fairlane.job"]["job_id"] == str(job)
    assert said["fairlane.job"]["fields"] == {"of": "[redacted]"}
    assert not worker.said("canary")
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert "canary" not in json.dumps(error)


def test_what_the_worker_has_open_is_not_the_tasks() -> None:
    """The loop that workers run on passes every inheritable descriptor on."""
    from worker.tasks import app

    attempt = an_attempt("open_files")
    (task,) = [task for (key, _), task in app.tasks.items() if key == "open_files"]
    theirs, kept = os.pipe()
    try:
        os.set_inheritable(theirs, True)
        name = str(Path(f"/proc/self/fd/{theirs}").readlink())
        executor = ProcessExecutor(task, "", 1_000_000)
        outcome = uvloop.run(executor.run(attempt))
    finally:
        os.close(theirs)
        os.close(kept)
    assert isinstance(outcome, Done), outcome
    (report,) = json.loads(outcome.result or "[]")
    assert report.startswith("pipe:")
    assert report != name
