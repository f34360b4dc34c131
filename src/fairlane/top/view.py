"""What is shown: a look, and how it differs from the looks before."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fairlane.top.sample import Row, Sample

WINDOW = 60.0  # seconds that a tenant's share of the worker time is told of
RATES = {"starts": "started", "finished": "finished", "failed": "failed"}


@dataclass
class Looks:
    """The looks of the last minute."""

    kept: deque[Sample] = field(default_factory=deque)

    def add(self, sample: Sample) -> dict[str, Any]:
        """The look as it is shown."""
        if self.kept and sample.at < self.kept[-1].at:
            self.kept.clear()  # the clock was put back: there is nothing to compare with
        while self.kept and (sample.at - self.kept[0].at).total_seconds() > WINDOW:
            self.kept.popleft()
        last = self.kept[-1] if self.kept else None
        first = self.kept[0] if self.kept else None
        self.kept.append(sample)
        queues = [_queue(row, sample, last) for row in sample.queues]
        return {
            "at": sample.at,
            "totals": _totals(queues, sample),
            "queues": queues,
            "tenants": [_tenant(row, sample, first) for row in sample.tenants],
            "workers": [_worker(row, sample.at) for row in sample.workers],
        }


def _queue(row: Row, now: Sample, last: Sample | None) -> dict[str, Any]:
    before = _named(last.queues, row["name"]) if last else None
    seconds = (now.at - last.at).total_seconds() if last else 0.0
    rates = {
        f"{name}_per_second": round((row[counter] - before[counter]) / seconds, 2)
        if before is not None and seconds > 0
        else None
        for name, counter in RATES.items()
    }
    shown = ("name", "due", "scheduled", "running", "slots", "workers", "paused")
    return {
        **{name: row[name] for name in shown},
        "oldest_due_seconds": _age(row["oldest_due"], now.at),
        **rates,
    }


def _totals(queues: list[dict[str, Any]], sample: Sample) -> dict[str, Any]:
    rates = (f"{name}_per_second" for name in RATES)
    return {
        **{name: sum(row[name] for row in queues) for name in ("due", "scheduled", "running")},
        "slots": sum(row["slots"] for row in queues),
        "workers": len([row for row in sample.workers if row["state"] == "live"]),
        **{
            name: None
            if any(row[name] is None for row in queues)
            else round(sum(row[name] for row in queues), 2)
            for name in rates
        },
    }


def _tenant(row: Row, now: Sample, first: Sample | None) -> dict[str, Any]:
    """Its share of the worker time of attempts that ended since the first look that is kept; while
    there is none, since the counters began."""
    before = _named(first.tenants, row["name"]) if first else None
    had, all_had = row["worker_seconds"], now.worker_seconds
    if first is not None and before is not None and now.worker_seconds > first.worker_seconds:
        had, all_had = had - before["worker_seconds"], all_had - first.worker_seconds
    shown = ("name", "due", "running", "max_running", "weight", "paused")
    share = round(min(had / all_had, 1.0), 4) if all_had > 0 else None
    return {**{name: row[name] for name in shown}, "worker_time_share": share}


def _worker(row: Row, now: datetime) -> dict[str, Any]:
    return {
        "name": row["name"],
        "host": row["host"],
        "queues": row["queues"],
        "running": row["running"],
        "slots": sum(int(slots) for slots in row["queues"].values()),
        "heartbeat_age_seconds": _age(row["last_seen_at"], now),
        "state": row["state"],
    }


def _named(rows: Any, name: str) -> Row | None:
    return next((row for row in rows if row["name"] == name), None)


def _age(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else round(max((now - moment).total_seconds(), 0.0), 1)
