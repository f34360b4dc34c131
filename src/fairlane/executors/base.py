"""What every executor offers, and the words it answers in."""

import traceback
from typing import Any, Protocol

from fairlane.core.text import storable
from fairlane.executors.cuts import MARGIN, beginning, ending
from fairlane.outcome import Failed, Outcome
from fairlane.worker.attempt import Attempt

__all__ = ["Executor", "cut", "failed", "storable"]

MESSAGE = 2_000  # characters that are kept
TRACEBACK = 16_384
STREAM = 4_096  # of each stream of a command; more is in the job's output


class Executor(Protocol):
    async def run(self, attempt: Attempt) -> Outcome:
        """Run the attempt to its end. Cancelling the call asks it to stop."""
        ...


def failed(error: BaseException) -> Failed:
    """A failed attempt, told so that a person can act on it."""
    name = type(error).__qualname__
    try:
        message, text = str(error), "".join(traceback.format_exception(error))
    except Exception:  # its own __str__ raises
        message = f"{name}, which cannot be written as text"
        text = "".join(traceback.format_tb(error.__traceback__))
    return Failed(
        {
            "type": storable(name),
            # Some more than is kept, for who scrubs it again; see cut().
            "message": storable(beginning(message, MESSAGE + MARGIN)) or storable(name),
            "traceback": storable(ending(text, TRACEBACK + MARGIN)),
        }
    )


def cut(error: dict[str, Any]) -> dict[str, Any]:
    """An error as long as it is kept. Scrub it before: half a secret is not recognised."""
    found = dict(error)
    if isinstance(message := found.get("message"), str):
        found["message"] = message[:MESSAGE]
    for name, most in (
        ("traceback", TRACEBACK),
        ("stdout_tail", STREAM),
        ("stderr_tail", STREAM),
    ):
        if isinstance(text := found.get(name), str):
            found[name] = text[-most:]
    return found
