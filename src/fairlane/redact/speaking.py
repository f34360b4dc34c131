"""Who is speaking: the job on whose behalf a line is logged, if it is one."""

from collections.abc import Callable
from contextvars import ContextVar

from fairlane.redact.redactor import Redactor

# How to make the redactor of the job that runs in this context; most jobs never log a line, and
# none is made for them.
SPEAKING: ContextVar[Callable[[], Redactor] | None] = ContextVar("fairlane.speaking", default=None)

_ANYBODY = Redactor()


def speaking() -> Redactor:
    """Takes out what must not stand in a line that is logged here and now."""
    make = SPEAKING.get()
    return _ANYBODY if make is None else make()
