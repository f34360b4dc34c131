"""Who is speaking: the job on whose behalf a line is logged, if it is one."""

from collections.abc import Callable
from contextvars import ContextVar

from fairlane.redact.redactor import Redactor
from fairlane.running import RUNNING

# How to make the redactor of a job that speaks elsewhere than in its own context, as from a thread
# that its task has started. Most jobs never log a line, and none is made for them.
SPEAKING: ContextVar[Callable[[], Redactor] | None] = ContextVar("fairlane.speaking", default=None)

_ANYBODY = Redactor()


def speaking() -> Redactor:
    """Takes out what must not stand in a line that is logged here and now."""
    if (make := SPEAKING.get()) is not None:
        return make()
    running = RUNNING.get()
    return _ANYBODY if running is None else running.redactor()
