"""Waiting for a job, and telling what happens to it meanwhile."""

from asyncio import sleep
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from fairlane.cli.drawing import Screen, drawn, failures
from fairlane.cli.render import clean, moment
from fairlane.cli.session import Row, Session
from fairlane.job import Job, JobStatus

QUICKEST, SLOWEST = 0.1, 1.0
# A job that has not moved for so long is worth a word on why.
PATIENCE = timedelta(seconds=2)

JOB = """
select j.*, d.redact
  from fairlane.jobs j
  join fairlane.definition d on d.key = j.definition_key and d.version = j.version
 where j.id = $1
"""


async def wait_for(db: Session, job_id: UUID) -> Row:
    """Follow a job until it has ended or is parked; its last row."""
    screen = Screen()
    pause = QUICKEST
    still = timedelta(0)
    while True:
        rows = await db.fetch(JOB, job_id)
        if not rows:
            from fairlane.errors import JobNotFound

            raise JobNotFound(f"job {job_id} is gone: its retention is over")
        job = Job.of(rows[0])
        is_running = job.status is JobStatus.RUNNING
        lines = _lines(job)
        # What goes on comes before how it ended, also where both are seen at once.
        news = screen.tell(lines if is_running else failures(job.progress) + lines)
        news |= screen.draw(drawn(job.progress) if is_running else "")
        if not job.status.is_live:
            return rows[0]
        still = timedelta(0) if news else still + timedelta(seconds=pause)
        pause = QUICKEST if news else min(pause * 1.3, SLOWEST)
        if still >= PATIENCE and not is_running:
            await _say_why(db, job_id, screen)
        await sleep(pause)


def _lines(job: Job) -> list[str]:
    """What can be said of a job now; a line that was said before is not said again."""
    attempt = f"attempt {job.attempt_count} of {job.max_attempts}"
    lines = []
    match job.status:
        case JobStatus.RUNNING:
            lines.append(f"running on {job.worker}, {attempt}")
        case JobStatus.SCHEDULED if job.attempt_count:
            lines.append(f"{attempt} failed: {gist(job.last_error)}")
        case JobStatus.SCHEDULED:
            lines.append(f"scheduled for {moment(job.scheduled_for)}")
        case JobStatus.QUEUED:
            lines.append(
                f"queued in {job.queue}" + (f", after {attempt}" if job.attempt_count else "")
            )
        case _:
            lines.append(_ending(job))
    if job.status is JobStatus.RUNNING and job.phase:
        lines.append(f"phase: {clean(job.phase)}")
    if job.status is JobStatus.RUNNING:
        lines += failures(job.progress)
    return lines


def _ending(job: Job) -> str:
    words = job.status.value.replace("_", " ")
    took = ""
    if job.started_at and job.finished_at:
        took = f" in {(job.finished_at - job.started_at).total_seconds():.1f} s"
    if job.status is JobStatus.SUCCEEDED:
        return f"{words}{took}" if job.result is None else f"{words}{took}: {clean(job.result)}"
    reason = gist(job.last_error)
    if job.status is JobStatus.SUCCEEDED_WITH_ERRORS:
        counted = (job.items or {}).get("counts", {}).get("failed")
        reason = f"{counted or len(job.errors or [])} of its items failed"
    return f"{words}{took}: {reason}" if reason else f"{words}{took}"


async def _say_why(db: Session, job_id: UUID, screen: Screen) -> None:
    why = await db.value("select fairlane.explain($1)", job_id)
    # Said once a reason: the figures in the sentence change all the time.
    screen.tell_once(why["reason"], f"waiting: {clean(why['detail'])}")


def gist(error: Mapping[str, Any] | None) -> str:
    """The first line of what went wrong."""
    if not error:
        return ""
    said = str(error.get("message") or error.get("reason") or "")
    return clean(said.splitlines()[0] if said else error.get("type", ""))
