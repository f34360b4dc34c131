"""The trace that a job is enqueued in and carries to its run: a W3C traceparent and, after a space,
a tracestate. One text, so that it is one column; whatever is no trace is none."""

import os
import re
from collections.abc import Mapping
from contextvars import ContextVar

PARENT, STATE = "traceparent", "tracestate"
LONGEST_STATE = 512

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_STATE = re.compile(r"[\x20-\x7e]+")

# What is enqueued in this context belongs to it.
CURRENT: ContextVar[str | None] = ContextVar("fairlane_trace", default=None)


def joined(parent: str | None, state: str | None = None) -> str | None:
    """A trace of the two values that travel in headers. A state that cannot be kept is dropped."""
    # Versions to come may have more behind what is known of this one.
    if parent is None or not _PARENT.fullmatch(parent := parent.strip()[:55]):
        return None
    state = (state or "").strip()
    if not state or len(state) > LONGEST_STATE or not _STATE.fullmatch(state):
        return parent
    return f"{parent} {state}"


def headers(trace: str | None) -> dict[str, str]:
    """A trace as it travels on."""
    if not trace:
        return {}
    parent, _, state = trace.partition(" ")
    return {PARENT: parent, STATE: state} if state else {PARENT: parent}


def received(given: Mapping[str, str]) -> str | None:
    """The trace that a request came with."""
    parent = given.get(PARENT)
    return None if parent is None else joined(parent, given.get(STATE))


def environment(trace: str | None) -> dict[str, str]:
    """A trace for a program, by the names that tools agree on."""
    return {name.upper(): value for name, value in headers(trace).items()}


def of_environment() -> str | None:
    """The trace that this program was started in."""
    return joined(os.environ.get(PARENT.upper()), os.environ.get(STATE.upper()))


def id_of(trace: str | None) -> str | None:
    return trace[3:35] if trace else None
