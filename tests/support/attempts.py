"""Attempts made by hand, for tests of what runs them."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from fairlane.worker.attempt import Attempt

# The third try, and the second that counts.
THIRD: dict[str, Any] = {"attempt": 3, "number": 2, "correlation_id": "c-1"}


def an_attempt(key: str, payload: dict[str, Any] | None = None, **more: Any) -> Attempt:
    """The first attempt of a job of acme's."""
    given: dict[str, Any] = {
        "job_id": uuid4(),
        "attempt": 1,
        "number": 1,
        "tenant_id": uuid4(),
        "tenant": "acme",
        "key": key,
        "version": "1",
        "queue": "default",
        "payload": payload or {},
        "correlation_id": None,
        "timeout": 60.0,
        "started_at": datetime.now(UTC),
    }
    return Attempt(**given | more)
