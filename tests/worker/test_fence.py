"""The number that a task hands on to what it writes to: it tells an old start from a new one."""

import pytest

from support.workers import Fleet, until


@pytest.mark.parametrize("key", ["fenced", "fenced_apart"])
def test_the_fence_rises_with_every_start_also_where_the_attempt_does_not(
    fleet: Fleet, key: str
) -> None:
    """A worker that goes hands its job back, and that attempt does not count: the next start has
    the same attempt. By that alone the first, if it still writes, could not be told from it."""
    first = fleet.worker(FAIRLANE_GRACE_SECONDS="0.2")
    job = fleet.enqueue(key)
    until(lambda: fleet.runs(), "it has started")
    assert first.stop() == 0
    assert fleet.status(job) == "queued"

    fleet.worker()
    until(lambda: len(fleet.runs()) == 2, "it has started again")
    (fleet.folder / "open").touch()
    fleet.until_status(job, "succeeded")

    starts = [line.split() for line in fleet.runs()]
    assert [attempt for attempt, _ in starts] == ["1", "1"]
    assert [int(fence) for _, fence in starts] == [1, 2]
    assert fleet.ask("select result::int from fairlane.jobs where id = %s", job) == 2
