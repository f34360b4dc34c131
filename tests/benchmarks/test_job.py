"""The job that all systems run burns as much of the processor as its payload says."""

from pathlib import Path

import pytest
from benchmarks.peers import job


async def test_a_job_burns_its_microseconds_at_the_pace_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.tell_into(tmp_path)
    turns: list[int] = []
    monkeypatch.setattr(job, "_spin", turns.append)

    await job.run({"us": 300, "pace": 50.5})
    job.run_now({"us": 300, "pace": 50.5})
    await job.run({})
    assert turns == [15_150, 15_150]
    assert job.Tally(tmp_path).count == 3


def test_the_pace_is_that_of_the_fastest_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([0.004, 0.001, 0.002])
    monkeypatch.setattr(job, "LOOKS", 3)
    monkeypatch.setattr(job, "_seconds_of", lambda turns: next(looks))

    assert job.calibrate() == pytest.approx(job.TURNS / 1_000)
