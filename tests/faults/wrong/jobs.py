"""I1 to I9: jobs that are lost or come from nowhere, moves that may not be, zombies."""

from faults.story import Story
from faults.wrong.base import wrong


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
