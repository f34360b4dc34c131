"""I10 to I13, I18: more run than may, at the wrong time, or for too long."""

from faults.story import Story
from faults.wrong.base import wrong


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
