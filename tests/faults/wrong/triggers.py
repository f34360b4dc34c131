"""I14: schedules and events."""

from typing import Any

from faults.story import Story
from faults.wrong.base import wrong

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
