"""The trace of a call that enqueues: what it enqueues carries it on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from starlette.requests import Request

from fairlane.observe import trace, tracing

if TYPE_CHECKING:
    from fairlane.observe.spans import Sending


class Shown:
    """A job as an answer of the API tells it."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.id: UUID = job["id"]
        self.queue: str = job["queue"]
        self.tenant: str = job["tenant"]
        self.definition_key: str = job["definition_key"]


class Untraced:
    """Nobody wants spans; the caller's trace is passed on all the same."""

    def sent(self, jobs: object) -> None:
        """Nothing to tell."""


_UNTRACED = Untraced()


@contextmanager
def sending(request: Request) -> Iterator["Sending | Untraced"]:
    """What is enqueued inside goes by the `traceparent` that the call came with."""
    caller = trace.received(request.headers)
    if (spans := tracing.spans()) is not None:
        with spans.sending(caller) as told:
            yield told
        return
    if caller is not None:
        trace.CURRENT.set(caller)  # a call is a task of its own: nothing takes it back
    yield _UNTRACED
