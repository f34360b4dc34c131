"""When jobs were claimed, by the clock that decides."""

from datetime import datetime, timedelta
from typing import Any

from support.workers import Fleet


def late(fleet: Fleet, job: Any, since: datetime, seconds: float) -> list[str]:
    """The attempt that runs now, if it was claimed later than so many seconds after `since`."""
    started = fleet.ask("select started_at from fairlane.jobs where id = %s", job)
    over = started - since - timedelta(seconds=seconds)
    return [f"{over} too late"] if over > timedelta(0) else []
