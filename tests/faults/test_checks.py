"""The checker is a test of the product; these are tests of the checker. A history that is well
passes, and each invariant finds the one thing that is wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from faults.bounds import measured
from faults.checks import CHECKS, check
from faults.checks.bodies import undone
from faults.history import History
from faults.story import Story, begun


def violated(history: History) -> set[str]:
    return {name.split()[0] for name, found in check(history).items() if found}


def a_rich_one() -> Story:
    """Whatever may happen to a job, in good order."""
    story = begun()
    story.enqueue("own", "own_id")
    story.ask("own_id", "own", id="own")
    story.claim("own", "w1")
    story.end("own")
    # It fails, waits, and comes to its end.
    story.enqueue("b", "by_http")
    story.claim("b", "w1")
    story.body("end", "b")
    story.move("b", status="scheduled", worker_id=None)
    story.move("b", status="queued")
    story.claim("b", "w2", 2)
    story.end("b", pid=2)
    # Its worker is killed, and another takes it when the lease is over.
    story.enqueue("c")
    story.claim("c", "w1")
    story.fault("kill_worker", pids=[1])
    story.wait(3.5)
    story.move("c", status="queued", worker_id=None, lost=1)
    story.claim("c", "w2", 2)
    story.end("c", pid=2)
    # It is parked, replayed, and parked for good.
    story.enqueue("d", max_attempts=1)
    story.claim("d", "w2", 2)
    story.bury("d")
    gone = {**story.jobs["d"], "status": "retried"}
    story.jobs["d"].update(status="queued", forgiven=1, worker_id=None)
    audit = {"action": "dead_letter.retried", "target": "d"}
    story.commit(
        ("job", "insert", story.jobs["d"]),
        ("dead_letter", "update", gone),
        ("audit", "insert", audit),
    )
    story.claim("d", "w2", 2)
    story.bury("d")
    # A key, had by one after the other; and one who is told of the first.
    story.enqueue("e", "dedupe", dedupe_key="k")
    story.ask("dedupe", "e", dedupe_key="k", deduplicated=True)
    story.claim("e", "w2", 2)
    story.ask("read", "e", job_status="running")
    story.end("e", pid=2)
    story.enqueue("f", "dedupe", dedupe_key="k")
    # Canceled while it runs.
    story.claim("f", "w2", 2)
    asked = {"action": "job.cancel", "target": "f"}
    story.jobs["f"]["cancel_requested_at"] = "now"
    story.commit(("job", "update", story.jobs["f"]), ("audit", "insert", asked))
    story.ask("cancel", "f", job_status="running")
    story.end("f", "canceled", pid=2)
    story.limit(1)
    return story


def test_a_history_that_is_well_passes() -> None:
    found = {name: some for name, some in check(a_rich_one().told()).items() if some}
    assert found == {}


# What is wrong, by the invariant that must see it.
Wrong = Callable[[Story], None]
WRONG: dict[str, list[tuple[str, Wrong]]] = {}


def wrong(name: str) -> Callable[[Wrong], Wrong]:
    def decorate(tell: Wrong) -> Wrong:
        WRONG.setdefault(name, []).append((tell.__name__, tell))
        return tell

    return decorate


@wrong("I1")
def acknowledged_and_never_written(story: Story) -> None:
    story.ask("library", "ghost")


@wrong("I1")
def acknowledged_and_gone_at_the_end(story: Story) -> None:
    del story.final["a"]


@wrong("I2")
def a_job_that_nobody_asked_for(story: Story) -> None:
    story.enqueue("z", "nobody")


@wrong("I2")
def a_job_whose_transaction_was_rolled_back(story: Story) -> None:
    story.enqueue("z", "nobody")
    story.ask("rolled_back", "c-z", "fail")


@wrong("I2")
def a_job_of_a_schedule_that_does_not_know_it(story: Story) -> None:
    story.enqueue("z", "nobody", source="schedule")


@wrong("I3")
def one_request_makes_two_jobs(story: Story) -> None:
    story.enqueue("z", correlation_id="c-a")


@wrong("I3")
def another_tenants_id_is_accepted(story: Story) -> None:
    story.ask("taken_id", "a")


@wrong("I4")
def a_finished_job_runs_again(story: Story) -> None:
    story.jobs["a"].update(status="queued", worker_id=None)
    story.commit(("job", "insert", story.jobs["a"]))


@wrong("I4")
def a_row_is_deleted_and_comes_nowhere(story: Story) -> None:
    story.enqueue("z")
    story.commit(("job", "delete", {"id": "z"}))


@wrong("I5")
def an_attempt_is_left_out(story: Story) -> None:
    story.enqueue("z")
    story.move("z", status="running", worker_id="w1", attempt=2)


@wrong("I5")
def more_attempts_than_allowed(story: Story) -> None:
    story.enqueue("z", max_attempts=1)
    story.claim("z", "w1")
    story.move("z", status="queued", worker_id=None)
    story.claim("z", "w1")


@wrong("I6")
def a_zombie_ends_the_job_of_its_heir(story: Story) -> None:
    story.enqueue("z")
    story.claim("z", "w1")
    story.move("z", status="queued", worker_id=None)
    story.claim("z", "w2", 2)
    story.end("z", attempt=1, worker_id="w1")


@wrong("I6")
def a_zombie_speaks_during_the_next_attempt(story: Story) -> None:
    story.enqueue("z")
    story.claim("z", "w1")
    story.move("z", status="queued", worker_id=None)
    story.claim("z", "w2", 2)
    story.commit(("log_line", "insert", {"job_id": "z", "attempt": 1}))


@wrong("I6")
def a_call_is_listened_to_after_its_lease(story: Story) -> None:
    story.ask("stale", "a", saying="report")


@wrong("I7")
def a_job_ends_twice(story: Story) -> None:
    story.commit(("history", "insert", {**story.jobs["a"], "status": "succeeded"}))


@wrong("I7")
def a_result_that_no_body_gave(story: Story) -> None:
    story.enqueue("z")
    story.claim("z", "w1")
    story.end("z", result='{"mark": "of another"}')


@wrong("I8")
def a_job_is_left_when_all_is_healed(story: Story) -> None:
    story.enqueue("z")
    story.drained = False


@wrong("I9")
def a_job_changes_its_tenant(story: Story) -> None:
    story.enqueue("z")
    story.move("z", tenant_id="t-globex")


@wrong("I9")
def a_job_of_another_tenant_than_asked(story: Story) -> None:
    story.enqueue("z", tenant_id="t-globex")


@wrong("I10")
def one_more_runs_than_may(story: Story) -> None:
    for job in ("x", "y", "z"):
        story.enqueue(job)
        story.claim(job, "w1")


@wrong("I10")
def one_starts_after_the_limit_was_lowered(story: Story) -> None:
    for job in ("x", "y"):
        story.enqueue(job)
    story.claim("x", "w1")
    story.limit(1)
    story.claim("y", "w1")


@wrong("I10")
def two_of_one_key_run_at_once(story: Story) -> None:
    for job in ("x", "y"):
        story.enqueue(job, concurrency_key="k")
        story.claim(job, "w1")


@wrong("I10")
def a_counter_is_off(story: Story) -> None:
    story.commit(*story.gates(1))


@wrong("I11")
def a_body_runs_that_nobody_claimed(story: Story) -> None:
    story.enqueue("z")
    story.body("start", "z")


@wrong("I11")
def one_claim_runs_twice(story: Story) -> None:
    story.enqueue("z")
    story.claim("z", "w1")
    story.body("start", "z", 7)


@wrong("I12")
def two_at_once_while_the_lease_holds(story: Story) -> None:
    story.enqueue("z")
    story.claim("z", "w1")
    story.beat("w1", 1)
    story.fault("kill_worker", pids=[7])
    story.move("z", status="queued", worker_id=None)
    story.claim("z", "w2", 2)
    attempt = story.jobs["z"]["attempt"]
    story.jobs["z"]["attempt"] = 1
    story.body("end", "z", 1)
    story.jobs["z"]["attempt"] = attempt


@wrong("I13")
def a_dead_worker_keeps_its_job(story: Story) -> None:
    story.enqueue("z")
    story.claim("z", "w1")
    story.fault("kill_worker", pids=[1])
    story.wait(30)
    story.move("z", status="queued", worker_id=None)


Change = tuple[str, str, dict[str, Any]]


def _firing(trigger: str, minute: int, job: str) -> Change:
    at = f"1970-01-01 00:{minute:02}:00+00"
    row = {"trigger_id": trigger, "scheduled_for": at, "missed": 0, "job_id": job}
    return ("firing", "insert", row)


def _trigger(policy: str) -> Change:
    row = {"id": "t", "cron_expr": "* * * * *", "missed": policy, "tenant_id": "t-acme"}
    return ("trigger", "insert", row)


@wrong("I14")
def a_tick_is_made_twice(story: Story) -> None:
    story.commit(_firing("t", 1, "x"))
    story.commit(_firing("t", 1, "y"))


@wrong("I14")
def a_tick_is_missing(story: Story) -> None:
    story.commit(_trigger("all"))
    story.wait(130)
    story.commit(_firing("t", 3, "x"))


@wrong("I14")
def a_missed_tick_is_not_accounted_for(story: Story) -> None:
    story.commit(_trigger("once"))
    story.wait(130)
    story.commit(_firing("t", 4, "x"))


@wrong("I14")
def an_acknowledged_event_is_not_there(story: Story) -> None:
    story.ask("event", "e-1")


@wrong("I14")
def an_event_is_never_delivered(story: Story) -> None:
    story.commit(("event", "insert", {"id": "e-1", "seq": 1}))


@wrong("I14")
def one_event_is_delivered_twice_and_another_never(story: Story) -> None:
    for seq in (1, 2):
        story.commit(("event", "insert", {"id": f"e-{seq}", "seq": seq}))
    for _ in range(2):
        row = {"event_seq": 1, "trigger_id": "t", "status": "skipped", "job_id": None}
        story.commit(("delivery", "insert", row))


@wrong("I17")
def two_live_jobs_have_one_key(story: Story) -> None:
    story.enqueue("y", dedupe_key="k")
    story.enqueue("z", dedupe_key="k")


@wrong("I17")
def told_of_a_job_that_had_no_such_key(story: Story) -> None:
    story.wait(5)
    story.ask("dedupe", "a", dedupe_key="k", deduplicated=True)


@wrong("I18")
def a_canceled_job_starts(story: Story) -> None:
    story.enqueue("z")
    story.ask("cancel", "z")
    story.claim("z", "w1")


@wrong("I18")
def a_canceled_job_runs_on(story: Story) -> None:
    story.enqueue("z")
    story.claim("z", "w1")
    story.ask("cancel", "z", job_status="running")
    story.wait(20)
    story.end("z", "canceled")


@wrong("I20")
def a_process_is_left(story: Story) -> None:
    story.left = ("process 7 outlived its worker",)


@wrong("I21")
def a_limit_is_changed_and_nobody_wrote_it_down(story: Story) -> None:
    story.limit(1, audited=False)


@wrong("I21")
def a_cancel_that_nobody_wrote_down(story: Story) -> None:
    story.enqueue("z")
    story.claim("z", "w1")
    story.move("z", cancel_requested_at="now")


@wrong("I22")
def a_reader_sees_what_was_before(story: Story) -> None:
    story.wait(5)
    story.ask("read", "a", job_status="queued")


CASES = [
    pytest.param(name, tell, id=f"{name}-{title}")
    for name, some in WRONG.items()
    for title, tell in some
]


@pytest.mark.parametrize(("name", "tell"), CASES)
def test_each_invariant_finds_what_is_wrong(name: str, tell: Wrong) -> None:
    story = begun()
    assert violated(story.told()) == set()
    tell(story)
    assert name in violated(story.told())


def test_every_invariant_has_been_seen_to_fail() -> None:
    assert set(WRONG) == {name.split()[0] for name in CHECKS}


def test_a_claim_that_a_crash_undid_is_no_ghost() -> None:
    """A claim does not wait for the disk: after a crash its job is simply still queued."""
    story = begun()
    story.enqueue("z")
    story.jobs["z"]["attempt"] = 1
    story.body("start", "z", 1)
    story.jobs["z"]["attempt"] = 0
    story.fault("kill_backend", up=story.at + 0.3)
    story.claim("z", "w2", 2)
    story.end("z", pid=2)
    assert violated(story.told()) == set()
    assert [body.job for body in undone(story.told())] == ["z"]


def test_what_a_transaction_made_and_unmade_was_never_there() -> None:
    """An id that is sent again after its job has ended: the row is written, found to be a second
    one, and taken back before anybody could see it."""
    story = begun()
    again = {**story.jobs["a"], "status": "queued", "attempt": 0, "worker_id": None}
    story.commit(("job", "insert", again), ("job", "delete", {"id": "a"}))
    assert violated(story.told()) == set()


def test_the_time_to_free_a_dead_workers_jobs_is_measured() -> None:
    story = begun()
    story.enqueue("z")
    story.claim("z", "w1")
    story.fault("kill_worker", pids=[1])
    story.wait(3.4)
    story.move("z", status="queued", worker_id=None)
    story.wait(10)
    (bound,) = [each for each in measured([story.told()]) if each.name.startswith("kill -9")]
    assert [round(figure, 1) for figure in bound.figures] == [3.5]
    assert bound.met


def test_the_deaths_by_a_poison_job_count_until_it_is_parked() -> None:
    """A person who replays it has asked for more of them."""
    story = begun()
    story.enqueue("p", max_attempts=1)
    story.fault("poison", job="p")
    story.claim("p", "w1")
    story.bury("p")
    story.body("start", "p", 2)
    (bound,) = [each for each in measured([story.told()]) if each.unit == "deaths"]
    assert bound.figures == [1]


def test_a_bound_that_was_missed_is_told() -> None:
    story = begun()
    story.enqueue("z")
    story.claim("z", "w1")
    story.fault("kill_worker", pids=[1])
    story.wait(6)
    story.move("z", status="queued", worker_id=None)
    (bound,) = [each for each in measured([story.told()]) if each.name.startswith("kill -9")]
    assert not bound.met
    assert "MISSED" in bound.line()
