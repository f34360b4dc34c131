"""I17, I20, I21, I22: keys, what is left, what nobody wrote down, what was read."""

from faults.story import Story
from faults.wrong.base import wrong


@wrong("I17")
def two_live_jobs_have_one_key(story: Story) -> None:
    story.enqueue("y", dedupe_key="k")
    story.enqueue("z", dedupe_key="k")


@wrong("I17")
def told_of_a_job_that_had_no_such_key(story: Story) -> None:
    story.wait(5)
    story.ask("dedupe", "a", dedupe_key="k", deduplicated=True)


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


@wrong("I21")
def a_dead_letter_is_reopened_and_nobody_wrote_it_down(story: Story) -> None:
    story.enqueue("z", max_attempts=1)
    story.claim("z", "w1")
    story.bury("z")
    for status, action in (("resolved", "dead_letter.resolved"), ("pending", "job.cancel")):
        row = {**story.jobs["z"], "status": status}
        audit = {"action": action, "target": "z"}
        story.commit(("dead_letter", "update", row), ("audit", "insert", audit))


@wrong("I22")
def a_reader_sees_what_was_before(story: Story) -> None:
    story.wait(5)
    story.ask("read", "a", job_status="queued")
