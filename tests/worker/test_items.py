"""Items: what is shown of the parts of a job while it runs, and what they make of its end."""

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from fairlane import testing
from fairlane.context import JobContext
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.outcome import Fail, Snooze
from fairlane.worker.reporter import Reporter
from support.attempts import an_attempt
from support.workers import Fleet, until
from worker import item_tasks

APP = "worker.item_tasks:app"


def items_of(fleet: Fleet, job: Any) -> Any:
    return fleet.ask("select progress -> 'items' from fairlane.jobs where id = %s", job)


def of_the_table(fleet: Fleet, job: Any) -> dict[str, str]:
    return dict(
        fleet.db.execute(
            "select i.name, i.state from fairlane.item i join fairlane.jobs j on j.id = i.job_id"
            " and j.attempt = i.attempt where i.job_id = %s",
            [job],
        ).fetchall()
    )


def test_one_item_that_fails_holds_up_no_other(fleet: Fleet) -> None:
    fleet.worker(app=APP)
    job = fleet.enqueue("build", '{"editions": ["main", "v2.x", "DM-1"], "broken": ["DM-1"]}')
    shown = until(lambda: items_of(fleet, job), "they are shown while it runs")
    assert shown == {
        "total": 3,
        "counts": {"in_progress": 3, "completed": 0, "failed": 0},
        "in_progress": ["main", "v2.x", "DM-1"],
        "completed": [],
        "failed": [],
    }

    (fleet.folder / "open").touch()
    fleet.until_status(job, "succeeded_with_errors")
    failed = [{"name": "DM-1", "error": "R2 timeout at DM-1"}]
    told = fleet.db.execute(
        "select errors, progress, result from fairlane.jobs where id = %s", [job]
    ).fetchone()
    assert told == (
        failed,
        {
            "items": {
                "total": 3,
                "counts": {"in_progress": 0, "completed": 2, "failed": 1},
                "in_progress": [],
                "completed": ["main", "v2.x"],
                "failed": failed,
            }
        },
        "done",
    )
    assert ("error", "item failed: DM-1") in fleet.db.execute(
        "select level, message from fairlane.log_line where job_id = %s", [job]
    ).fetchall()


def test_when_all_items_fail_the_attempt_has_failed_and_the_next_begins_without_any(
    fleet: Fleet,
) -> None:
    (fleet.folder / "open").touch()
    fleet.worker(app=APP)
    job = fleet.enqueue("build", '{"editions": ["a", "b"], "broken": ["a", "b"]}')
    fleet.until_status(job, "scheduled")
    error, progress = fleet.db.execute(  # type: ignore[misc]
        "select last_error, progress from fairlane.jobs where id = %s", [job]
    ).fetchone()
    assert error["type"] == "ItemsFailed"
    assert error["message"] == "all 2 items failed: a: R2 timeout at a; b: R2 timeout at b"
    assert [each["name"] for each in error["errors"]] == ["a", "b"]
    assert progress is None

    (fleet.folder / "open").unlink()
    fleet.db.execute(
        "update fairlane.job set scheduled_for = fairlane.clock() where id = %s", [job]
    )
    shown = until(lambda: items_of(fleet, job), "it runs again")
    assert shown["counts"] == {"in_progress": 2, "completed": 0, "failed": 0}


def test_what_coroutines_and_threads_move_at_once_is_all_right_at_the_end(fleet: Fleet) -> None:
    fleet.worker(app=APP)
    together = fleet.enqueue("crowd", '{"count": 100}')
    apart = fleet.enqueue("crowd_apart", '{"count": 100}')
    for job, kinds in ((together, ("coroutine", "thread")), (apart, ("thread",))):
        fleet.until_status(job, "succeeded_with_errors")
        expected = {
            f"{kind} {n}": "completed" if n % 3 else "failed" for kind in kinds for n in range(100)
        }
        assert of_the_table(fleet, job) == expected
        shown = items_of(fleet, job)
        failed = sum(state == "failed" for state in expected.values())
        assert shown["total"] == len(expected)
        assert shown["counts"] == {
            "in_progress": 0,
            "completed": len(expected) - failed,
            "failed": failed,
        }
        errors = fleet.ask("select errors from fairlane.jobs where id = %s", job)
        assert {each["name"] for each in errors} == {
            name for name, state in expected.items() if state == "failed"
        }
    lines = fleet.ask(
        "select count(*) from fairlane.log_line where job_id = %s and level = 'error'", apart
    )
    assert lines == 34  # each is told once, on whichever side of the border


def test_of_many_items_each_is_counted_and_the_first_are_named(fleet: Fleet) -> None:
    fleet.worker(app=APP)
    job = fleet.enqueue("many", '{"count": 10000}')
    shown = until(
        lambda: (found := items_of(fleet, job)) and found["counts"]["failed"] and found,
        "all are counted",
    )
    assert shown["counts"] == {"in_progress": 0, "completed": 9_999, "failed": 1}
    assert shown["completed"] == [f"part {n}" for n in range(1, 51)]
    assert shown["failed"] == [{"name": "part 0", "error": "x" * 300}]
    size = fleet.ask("select length(progress::text) from fairlane.job where id = %s", job)
    assert size < 16_384

    (fleet.folder / "open").touch()
    fleet.until_status(job, "succeeded_with_errors")
    refused = fleet.enqueue("many", '{"count": 10001}')
    fleet.until_status(refused, "scheduled", "dead_letter")
    error = fleet.ask("select last_error ->> 'message' from fairlane.jobs where id = %s", refused)
    assert error.startswith("10,001 items, and the most is 10,000; ")
    assert of_the_table(fleet, refused) == {}


def test_what_is_in_progress_when_the_task_returns_was_not_finished(fleet: Fleet) -> None:
    fleet.worker(app=APP)
    some = fleet.enqueue("unfinished", '{"done": ["a", "b"]}')
    none = fleet.enqueue("unfinished", '{"done": []}')
    fleet.until_status(some, "succeeded_with_errors")
    errors = fleet.ask("select errors from fairlane.jobs where id = %s", some)
    assert errors == [{"name": "c", "error": "not finished"}]
    fleet.until_status(none, "dead_letter")
    error = fleet.ask("select last_error ->> 'message' from fairlane.jobs where id = %s", none)
    assert error.startswith("all 3 items failed: a: not finished; b: not finished; ")


def test_a_zombie_moves_no_item(fleet: Fleet) -> None:
    fleet.worker(app=APP, FAIRLANE_LEASE_SECONDS="3600")
    job = fleet.enqueue("build", '{"editions": ["main"]}')
    shown = until(lambda: items_of(fleet, job), "it runs")
    worker = fleet.ask("select worker_id from fairlane.job where id = %s", job)
    moves = [{"name": "main", "state": "failed", "error": "late"}, {"name": "x", "state": "failed"}]
    for attempt, by in ((0, worker), (2, worker)):
        said = Jsonb([{"job_id": str(job), "attempt": attempt, "items": moves}])
        assert fleet.ask("select fairlane.report(%s, %s)", by, said) is None
    assert items_of(fleet, job) == shown
    assert of_the_table(fleet, job) == {"main": "in_progress"}


def test_an_item_moved_twice_stands_where_it_was_moved_last_but_what_failed_is_heard(
    fleet: Fleet,
) -> None:
    """Both here and in the database, which also hears workers in other languages."""
    fleet.worker(app=APP, FAIRLANE_LEASE_SECONDS="3600")
    job = fleet.enqueue("build", '{"editions": ["x"]}')
    until(lambda: items_of(fleet, job), "it runs")
    worker = fleet.ask("select worker_id from fairlane.job where id = %s", job)
    ctx = JobContext(tenant="acme", job_id=uuid4())
    for state, again, expected in (
        ("completed", False, "completed"),
        ("completed", False, "completed"),
        ("failed", False, "failed"),
        ("completed", False, "failed"),
        ("in_progress", False, "in_progress"),
        ("completed", False, "completed"),
        ("failed", False, "failed"),
        ("completed", True, "completed"),
    ):
        if again:
            ctx.item("x").start()
        ctx.ledger.move("x", state, "why")  # type: ignore[arg-type]
        assert ctx.item("x").state == expected
        move = {"name": "x", "state": state, "error": "why", "again": again}
        said = Jsonb([{"job_id": str(job), "attempt": 1, "items": [move]}])
        fleet.ask("select fairlane.report(%s, %s)", worker, said)
        assert of_the_table(fleet, job) == {"x": expected}
        assert items_of(fleet, job)["counts"][expected] == 1


def test_a_job_that_reports_a_thousand_times_a_second_costs_few_writes(fleet: Fleet) -> None:
    fleet.worker(app=APP)
    job = fleet.enqueue("chats")
    seen = set()
    started = fleet.db.execute("select clock_timestamp()").fetchone()

    def several() -> bool:
        seen.add(fleet.ask("select xmin::text from fairlane.job where id = %s", job))
        return len(seen) >= 6

    until(several, "it is told several times")
    seconds = fleet.ask("select extract(epoch from clock_timestamp() - %s)::float", *started or [])
    assert len(seen) / seconds <= 12
    (fleet.folder / "open").touch()
    fleet.until_status(job, "succeeded")


def test_what_makes_no_sense_is_ignored_and_the_log_says_so(fleet: Fleet) -> None:
    fleet.worker(app=APP)
    job = fleet.enqueue("nonsense")
    wordy = fleet.enqueue("long_winded")
    fleet.until_status(job, "succeeded")
    told = fleet.db.execute(
        "select phase, progress from fairlane.jobs where id = %s", [job]
    ).fetchone()
    assert told == ("sense", {"done": 1, "total": 2, "message": "half"})
    lines = fleet.db.execute(
        "select message from fairlane.log_line where job_id = %s and level = 'warning'", [job]
    ).fetchall()
    assert lines == [
        ("the phase 7 is ignored: a phase is named by text",),
        ("progress 3 of 2 is ignored: it is over its total",),
    ]
    fleet.until_status(wordy, "succeeded")
    kept = fleet.ask("select progress from fairlane.jobs where id = %s", wordy)
    assert kept["message"] == "m" * 1_000
    assert kept.keys() == {"done", "total", "message", "omitted"}


async def test_a_move_that_found_the_row_locked_is_sent_again() -> None:
    """A cancel holds the row for a moment: the item would have stayed in progress for ever."""
    sent: list[Any] = []
    attempt = an_attempt("build")

    async def send(call: Call) -> list[Record]:
        sent.append(call.args[1])
        return [] if len(sent) == 1 else [(attempt.job_id,)]  # type: ignore[list-item]

    reporter = Reporter(uuid4(), send)
    reporter.item(attempt, "a", "failed", "no", False)
    await reporter.flush(attempt)
    assert len(sent) == 2
    assert '"state":"failed"' in sent[1]
    assert not reporter.has(attempt)


def a_context() -> JobContext:
    return JobContext(tenant="acme", job_id=uuid4())


async def test_what_is_about_the_task_goes_further_than_the_item() -> None:
    ctx = a_context()
    with pytest.raises(Snooze), ctx.item("snoozes"):
        raise Snooze(60)
    with pytest.raises(Fail), ctx.item("gives up"):
        raise Fail("no use")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0), ctx.item("is cancelled"):
            await asyncio.Event().wait()
    with ctx.item("raises"):
        raise KeyError("x")
    with ctx.item("says so") as item:
        item.fail("half of it is missing")
    assert {item.name: (item.state, item.error) for item in ctx.items()} == {
        "snoozes": ("in_progress", None),
        "gives up": ("failed", "no use"),
        "is cancelled": ("failed", "CancelledError"),
        "raises": ("failed", "KeyError: 'x'"),
        "says so": ("failed", "half of it is missing"),
    }


def test_items_as_a_block_leave_none_in_progress() -> None:
    ctx = a_context()
    with ctx.items(["a", "b", "a"]) as items:
        items.complete("a")
    assert len(items) == 2
    assert (items["a"].state, items["b"].error) == ("completed", "not finished")


@pytest.mark.parametrize("name", [7, None, b"x", "", " ", "x" * 201])
def test_a_name_that_cannot_be_kept_is_refused(name: Any) -> None:
    ctx = a_context()
    with pytest.raises((TypeError, ValueError), match="the name of an item"):
        ctx.item(name)
    with pytest.raises((TypeError, ValueError), match="the name of an item"):
        ctx.items(["good", name])
    assert len(ctx.items()) == 0


def test_one_text_is_no_list_of_names() -> None:
    with pytest.raises(TypeError, match=r"ctx\.item"):
        a_context().items("main")


def test_a_name_with_what_no_database_keeps_is_told_in_another_way() -> None:
    ctx = a_context()
    ctx.item("a \x00 and half a character \ud800").start()
    assert [item.name for item in ctx.items()] == ["a \\x00 and half a character \\ud800"]


async def test_a_test_sees_the_items_of_a_run() -> None:
    (item_tasks.FOLDER / "open").touch()
    try:
        run = await testing.run(item_tasks.build, tenant="acme", editions=["a", "b"], broken=["b"])
    finally:
        (item_tasks.FOLDER / "open").unlink()
    assert run.outcome == "succeeded_with_errors"
    assert run.items == {"a": "completed", "b": "failed"}
    assert run.errors == [{"name": "b", "error": "R2 timeout at b"}]
    assert not run.succeeded


def test_many_threads_name_no_item_twice() -> None:
    ctx = a_context()

    def complete_all() -> None:
        for n in range(200):
            ctx.item(str(n)).complete()

    threads = [threading.Thread(target=complete_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [item.name for item in ctx.items()].count("7") == 1
    assert len(ctx.items()) == 200


def test_a_command_says_what_became_of_its_items(fleet: Fleet) -> None:
    lines = "".join(
        f'echo \'{{"item": "{n}", "state": "{"failed" if n % 2 else "completed"}"}}\' >&3; '
        for n in range(120)
    )
    script = fleet.folder / "moves.sh"
    script.write_text(f"#!/bin/sh\n{lines}\n")
    script.chmod(0o755)
    fleet.db.execute(
        "select fairlane.define(%s)",
        [Jsonb([{"key": "c", "executor": "command", "settings": {"argv": [str(script)]}}])],
    )
    fleet.worker(app=None)
    job = fleet.enqueue("c")
    fleet.until_status(job, "succeeded_with_errors")
    assert items_of(fleet, job)["counts"] == {"in_progress": 0, "completed": 60, "failed": 60}
