"""One task, run once, with no server and no queue."""

from datetime import UTC, datetime
from typing import Any

from fairlane.task import Task
from fairlane.testing.attempts import AnyTask, carry_out, carry_out_sync
from fairlane.testing.inline_job import InlineJob
from fairlane.testing.runs import Run, acquire_from


async def run(task: AnyTask, /, *, tenant: str, connection: Any = None, **arguments: Any) -> Run:
    """Run a task once, in this process, as a worker would; arguments and options as of `enqueue`.

    The arguments are validated and go through JSON, and so does the result. What the task raises
    is told by the run, not raised. `connection` is an asyncpg connection for `ctx.connection()`.
    """
    job = _job(task, tenant, arguments)
    return await carry_out(task, job.started(job.scheduled_for), acquire_from(connection))


def run_sync(task: AnyTask, /, *, tenant: str, connection: Any = None, **arguments: Any) -> Run:
    """The same, for a test without an event loop; a plain function runs in its own thread."""
    job = _job(task, tenant, arguments)
    return carry_out_sync(task, job.started(job.scheduled_for), acquire_from(connection))


def _job(task: AnyTask, tenant: str, arguments: dict[str, Any]) -> InlineJob:
    if not isinstance(task, Task):
        raise TypeError(f"{task!r} is no task; decorate the function with @app.job")
    request = task.request(tenant=tenant, **arguments)
    return InlineJob.of(request, task, datetime.now(UTC))
