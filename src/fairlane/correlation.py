"""The correlation id of the call that is being answered, for every log line on the way."""

from contextvars import ContextVar

from fairlane.running import RUNNING

CURRENT: ContextVar[str | None] = ContextVar("fairlane_correlation_id", default=None)


def passed_on() -> str | None:
    """What is enqueued and emitted here belongs to what the job belongs to that does it."""
    running = RUNNING.get()
    return CURRENT.get() if running is None else running.correlation_id
