"""What jobs say and what they come to, as their worker keeps it."""

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from fairlane import Fairlane
from fairlane.context import Flag
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.executors.base import failed
from fairlane.worker.listener import Listener
from fairlane.worker.reporter import Reporter
from fairlane.worker.worker import Worker
from support.attempts import an_attempt
from support.proxy import Cut, Proxy
from support.workers import Fleet, until


def test_what_a_job_says_can_be_read_while_it_runs(fleet: Fleet) -> None:
    fleet.worker()
    job = fleet.enqueue("speaks")
    told = until(
        lambda: fleet.db.execute(
            "select phase, progress from fairlane.jobs where id = %s and phase is not null", [job]
        ).fetchone(),
        "it says what it does",
    )
    assert told == ("reading", {"done": 1, "total": 3, "message": "one of three"})

    (fleet.folder / "open").touch()
    fleet.until_status(job, "succeeded")
    lines = fleet.db.execute(
        "select level, message, fields from fairlane.log_line where job_id = %s order by seq", [job]
    ).fetchall()
    assert lines == [
        ("info", "phase: reading", {"files": 3}),
        ("warning", "half way", {"row": 7}),
        ("info", "done", None),
    ]


def test_what_a_job_says_in_a_process_of_its_own_is_kept_as_well(fleet: Fleet) -> None:
    fleet.worker()
    job = fleet.enqueue("speaks_in_process")
    fleet.until_status(job, "succeeded")
    told = fleet.db.execute(
        "select phase, progress, result from fairlane.jobs where id = %s", [job]
    ).fetchone()
    assert told == ("apart", {"done": 2, "total": 2}, "said")
    lines = fleet.db.execute(
        "select message, fields from fairlane.log_line where job_id = %s order by seq", [job]
    ).fetchall()
    assert lines == [("phase: apart", None), ("from another process", {"row": 7})]


def test_no_secret_of_a_job_is_kept_or_logged_whoever_quotes_it(fleet: Fleet) -> None:
    worker = fleet.worker()
    job = fleet.enqueue("tells_secrets", '{"key": "canary-9f27c1"}')
    fleet.until_status(job, "dead_letter")
    worker.until_said("the.users.own")

    assert not worker.said("canary-9f27c1")
    for table in ("log_line", "attempt", "jobs", "dead_letters", "attempts"):
        kept = fleet.db.execute(f"select t::text from fairlane.{table} t").fetchall()
        assert kept, table
        assert "canary-9f27c1" not in str(kept), table
    assert fleet.ask("select payload->>'key' from fairlane.dead_letter") == "canary-9f27c1"


def test_an_attempt_that_has_lost_its_lease_has_no_say(fleet: Fleet) -> None:
    fleet.worker(FAIRLANE_LEASE_SECONDS="3600")
    job = fleet.enqueue("speaks")
    until(lambda: fleet.ask("select count(*) from fairlane.log_line") == 2, "it speaks")
    worker = fleet.ask("select worker_id from fairlane.job where id = %s", job)

    said = Jsonb(
        [
            {
                "job_id": str(job),
                "attempt": 2,
                "phase": "late",
                "lines": [{"level": "info", "message": "late"}],
            }
        ]
    )
    assert fleet.ask("select fairlane.report(%s, %s)", worker, said) is None

    assert fleet.ask("select phase from fairlane.job where id = %s", job) == "reading"
    assert fleet.ask("select count(*) from fairlane.log_line") == 2


def test_words_that_cannot_be_kept_harm_nobody(fleet: Fleet) -> None:
    """They ended the worker's life, with every other tenant's jobs in it."""
    worker = fleet.worker("default=1")
    fleet.until_status(fleet.enqueue("mumbles"), "succeeded")
    fleet.until_status(fleet.enqueue("echo", tenant="globex"), "succeeded")
    assert not worker.said("starts over")
    assert fleet.ask("select count(*) from fairlane.worker") == 1
    kept = fleet.ask("select array_agg(message order by seq) from fairlane.log_line")
    assert kept == ["first", "second"]


def test_a_thread_that_a_task_has_started_shows_no_secrets_either(fleet: Fleet) -> None:
    worker = fleet.worker()
    job = fleet.enqueue("whispers_in_thread", '{"password": "canary-5be2f0"}')
    fleet.until_status(job, "succeeded")
    worker.until_said("it is [redacted]")
    assert not worker.said("canary-5be2f0")


def test_a_payload_nested_too_deep_is_parked_and_harms_nobody(fleet: Fleet) -> None:
    """By SQL it travels with the claim, and reading it ended every worker that claimed it."""
    worker = fleet.worker()
    other = fleet.enqueue("wait_for", tenant="globex")
    until(lambda: fleet.runs(), "it runs")
    job = fleet.enqueue("anything", '{"x": %s%s}' % ("[" * 1200, "]" * 1200))  # noqa: UP031
    fleet.until_status(job, "dead_letter")
    assert fleet.ask("select reason from fairlane.dead_letter where id = %s", job) == "invalid"
    (fleet.folder / "open").touch()
    fleet.until_status(other, "succeeded")
    assert fleet.ask("select attempt from fairlane.jobs where id = %s", other) == 1
    assert not worker.said("starts over")


async def test_an_outcome_waits_for_words_that_travel() -> None:
    """The last lines of a job were lost when its outcome overtook them."""
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> list[Record]:
        arrived.set()
        await go.wait()
        return []

    reporter = Reporter(uuid4(), slow)
    attempt = an_attempt("speaks")
    reporter.line(attempt, "info", "last words", {})
    flushing = asyncio.create_task(reporter.flush())
    await asyncio.wait_for(arrived.wait(), 5)
    assert reporter.has(attempt)
    go.set()
    await flushing
    assert not reporter.has(attempt)


async def test_when_a_part_of_a_worker_fails_its_jobs_go_back_at_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They waited for the lease to end, and were charged an attempt each."""
    app = Fairlane(database)
    started, broken = asyncio.Event(), asyncio.Event()

    @app.job("long")
    async def long() -> None:
        started.set()
        await asyncio.Event().wait()

    async def breaks(self: Listener) -> None:
        if broken.is_set():
            await asyncio.Event().wait()
        await started.wait()
        broken.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(Listener, "run", breaks)
    worker = Worker(app, database, {"default": 1}, lease_seconds=3600)
    running = asyncio.create_task(worker.run())
    async with app:
        await worker.ready.wait()
        await app.ask(calls.create_tenant("acme", "pro", "", {}))
        job = await app.enqueue("long", tenant="acme")
        await asyncio.wait_for(broken.wait(), 20)
        started.clear()
        await asyncio.wait_for(started.wait(), 20)  # in the next life
        found = await app.get(job.id)
        assert found.attempt_count == 1
    worker.stop()
    running.cancel()
    await asyncio.wait([running], timeout=20)


@pytest.mark.fault
def test_jobs_of_a_claim_whose_answer_was_lost_go_back_at_once(fleet: Fleet) -> None:
    """They ran nowhere, on a worker that lived, until twice their timeout was over."""
    proxy = Proxy(fleet.url)
    proxy.cut_answer_with(b"the lost one")
    try:
        fleet.worker(FAIRLANE_DATABASE_URL=proxy.url, FAIRLANE_LEASE_SECONDS="3")
        job = fleet.enqueue("echo", '{"text": "the lost one"}')
        fleet.until_status(job, "succeeded", within=15)
    finally:
        proxy.close()
    assert proxy.done == [Cut.MARKED_ANSWER]
    assert len(fleet.runs()) == 1
    outcomes = fleet.ask("select array_agg(outcome) from fairlane.attempt where job_id = %s", job)
    assert outcomes == ["handed_back"]
    fleet.assert_books_balance()


def test_tasks_that_hold_connections_hold_up_nobody_else(fleet: Fleet) -> None:
    fleet.worker("default=10", "bulk=1")
    for _ in range(10):
        fleet.enqueue("holds_connection")
    until(lambda: len(fleet.runs()) == 10, "all hold one")

    fleet.until_status(fleet.enqueue("gives_up", tenant="globex", queue="bulk"), "failed")

    (fleet.folder / "open").touch()
    until(lambda: fleet.ask("select count(*) from fairlane.job") == 0, "all are done")


def test_an_error_that_cannot_be_written_as_text_is_still_a_failed_attempt(fleet: Fleet) -> None:
    fleet.worker("default=1")
    job = fleet.enqueue("unspeakable")
    fleet.until_status(job, "dead_letter")
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert error["type"] == "Unspeakable"
    assert "cannot be written" in error["message"]
    # Its slot is free again.
    fleet.until_status(fleet.enqueue("echo"), "succeeded")


def test_many_failures_are_written_together(fleet: Fleet) -> None:
    fleet.worker("default=50")
    fleet.db.execute("select fairlane.set_plan('pro', '{\"max_running\": 50}')")
    jobs = [fleet.enqueue("fails") for _ in range(100)]
    until(
        lambda: (
            fleet.ask(
                "select count(*) from fairlane.job where status = 'scheduled' and attempt = 1"
            )
            == 100
        ),
        "each has failed once",
    )
    together = fleet.ask(
        """
        select count(*) / count(distinct finished_at)
          from fairlane.attempt
         where job_id = any (%s)
        """,
        jobs,
    )
    assert together > 1
    fleet.assert_books_balance()


async def test_a_call_that_waits_for_a_thread_does_not_begin_once_it_is_stopped() -> None:
    """One pool served all lives of a worker: a call of a lost life began in the next."""
    from fairlane.executors.function import FunctionExecutor

    app = Fairlane("postgresql://nowhere/none")
    begun: list[str] = []

    @app.job("late")
    def late() -> None:
        begun.append("late")

    release = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(release.wait)
        attempt = an_attempt("late")
        running = asyncio.create_task(FunctionExecutor(late, threads, 1000).run(attempt))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running], timeout=5)
        assert running.cancelled()
        release.set()
    assert begun == []


def test_a_flag_whose_waiter_has_gone_can_still_be_raised() -> None:
    flag = Flag()

    async def give_up_waiting() -> None:
        waiting = asyncio.ensure_future(flag._wait())
        await asyncio.sleep(0)
        waiting.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(give_up_waiting())
    loop.close()
    gc.collect()
    flag.raise_()
    assert flag


def test_an_error_keeps_its_words_when_it_has_some() -> None:
    assert failed(ValueError("no luck")).error["message"] == "no luck"
