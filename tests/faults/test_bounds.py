"""What is measured, and from when to when."""

from faults.bounds import BOUNDS, Bound, figures_of
from faults.kinds import CALM
from faults.story import Story, begun


def measured(story: Story, name: str) -> list[float]:
    return [figure for found, figure in figures_of(story.told()) if found == name]


def test_a_calm_run_has_a_fault_for_every_bound() -> None:
    assert all(set(promise.kinds) & set(CALM) for promise in BOUNDS.values())


def test_a_bound_without_a_figure_is_not_met() -> None:
    assert Bound("kill").verdict == "not measured"
    assert Bound("kill").line().endswith("not measured")


def test_the_time_to_free_a_dead_workers_jobs_is_measured() -> None:
    story = begun()
    story.enqueue("z")
    story.claim("z", "w1")
    story.fault("kill_worker", pids=[1])
    story.wait(3.4)
    story.move("z", status="queued", worker_id=None)
    story.wait(10)
    bound = Bound("kill", measured(story, "kill"))
    assert [round(figure, 1) for figure in bound.figures] == [3.5]
    assert bound.verdict == "met"


def test_the_deaths_by_a_poison_job_count_until_it_is_parked() -> None:
    """A person who replays it has asked for more of them."""
    story = begun()
    story.enqueue("p", max_attempts=1)
    story.fault("poison", job="p")
    story.claim("p", "w1")
    story.bury("p")
    story.body("start", "p", 2)
    assert measured(story, "poison") == [1]


def test_a_death_that_a_crash_of_the_database_has_undone_is_none() -> None:
    story = begun()
    story.enqueue("p", max_attempts=2)
    story.fault("poison", job="p")
    story.jobs["p"]["attempt"] = 1
    story.body("start", "p", 1)
    story.jobs["p"]["attempt"] = 0
    story.fault("kill_backend", up=story.at + 0.3)
    story.claim("p", "w2", 2)
    story.bury("p")
    assert measured(story, "poison") == [1]


def test_a_bound_that_was_missed_is_told() -> None:
    story = begun()
    story.enqueue("z")
    story.claim("z", "w1")
    story.fault("kill_worker", pids=[1])
    story.wait(6)
    story.move("z", status="queued", worker_id=None)
    assert "MISSED" in Bound("kill", measured(story, "kill")).line()
