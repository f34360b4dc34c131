"""The checker is a test of the product; these are tests of the checker. A history that is well
passes, and each invariant finds the one thing that is wrong."""

import pytest

from faults.checks import CHECKS, check
from faults.checks.bodies import undone
from faults.history import History
from faults.story import Story, begun
from faults.wrong import WRONG, Wrong


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


def test_an_end_that_was_written_anew_is_one() -> None:
    """Somebody asked for the job's cancel, or wrote how far it is, between the finish reading its
    row and taking it: the history is taken back, and written again by the same transaction."""
    story = begun()
    story.enqueue("z")
    story.claim("z", "w1")
    story.body("end", "z")
    end = ("history", "insert", {**story.jobs["z"], "status": "succeeded"})
    story.commit(end, end, ("job", "delete", {"id": "z"}))
    story.final["z"] = "succeeded"
    assert violated(story.told()) == set()


def test_an_end_that_was_written_and_taken_back_is_none() -> None:
    """A finish writes the history first, and then finds that the job is no longer its own. The
    witness hears of what is put into the history, not of what is taken out again."""
    story = begun()
    story.enqueue("z")
    story.claim("z", "w1")
    story.move("z", status="queued", worker_id=None, forgiven=1)
    story.commit(("history", "insert", {**story.jobs["z"], "status": "succeeded"}))
    story.claim("z", "w2", 2)
    story.end("z", pid=2)
    assert violated(story.told()) == set()


def test_what_a_transaction_made_and_unmade_was_never_there() -> None:
    """An id that is sent again after its job has ended: the row is written, found to be a second
    one, and taken back before anybody could see it."""
    story = begun()
    again = {**story.jobs["a"], "status": "queued", "attempt": 0, "worker_id": None}
    story.commit(("job", "insert", again), ("job", "delete", {"id": "a"}))
    assert violated(story.told()) == set()
