"""Workers as the pages show them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fairlane.api.answers import plain
from fairlane.core.connect import Record

# A worker says that it lives three times in a lease.
MISSED = 2 / 3


def seen(row: "Mapping[str, Any] | Record", now: datetime) -> dict[str, Any]:
    """With whether two of its heartbeats are missing: it may yet come back before its lease ends,
    and until then nobody else takes its jobs."""
    shown = plain(row, "queues")
    lease = shown["lease_expires_at"] - shown["last_seen_at"]
    is_here = shown["state"] in ("live", "draining")
    return {
        **shown,
        "slots": sum(shown["queues"].values()),
        "is_silent": is_here and now - shown["last_seen_at"] > lease * MISSED,
    }
