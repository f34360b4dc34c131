"""What every executor offers, and the words it answers in."""

import traceback
from typing import Protocol

from fairlane.context import JobContext
from fairlane.outcome import Failed, Outcome
from fairlane.worker.attempt import Attempt

TAIL = 16_384  # characters of a traceback that are kept


class Executor(Protocol):
    async def run(self, attempt: Attempt, ctx: JobContext) -> Outcome:
        """Run the attempt to its end. Cancelling the call asks it to stop."""
        ...


def failed(error: BaseException) -> Failed:
    """A failed attempt, told so that a person can act on it."""
    name = type(error).__qualname__
    try:
        message, text = str(error)[:2_000], "".join(traceback.format_exception(error))
    except Exception:  # its own __str__ raises
        message = f"{name}, which cannot be written as text"
        text = "".join(traceback.format_tb(error.__traceback__))
    return Failed(
        {
            "type": storable(name),
            "message": storable(message) or storable(name),
            "traceback": storable(text[-TAIL:]),
        }
    )


def storable(text: str) -> str:
    """Text as PostgreSQL can keep it: an error that cannot be written down would leave its job
    running for ever."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
