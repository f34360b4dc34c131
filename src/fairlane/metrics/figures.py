"""What `fairlane.figures` answers, as metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlane.metrics.text import Page, flag, states

OTHER = "other"
ENDS = ("succeeded", "succeeded_with_errors", "failed", "canceled", "dead_letter")
LIVE = ("queued", "scheduled", "running")
WORKER_STATES = ("live", "draining", "lost", "stopped")

# What a queue's row says, by its name there.
OF_QUEUE = {
    "fairlane_jobs_enqueued_total": "enqueued",
    "fairlane_jobs_started_total": "started",
    "fairlane_jobs_retried_total": "retried",
    "fairlane_jobs_stuck_total": "stuck",
    "fairlane_leases_lost_total": "lost",
    "fairlane_jobs_over_backlog_total": "over_backlog",
    "fairlane_queue_latency_seconds_total": "wait_seconds",
    "fairlane_worker_seconds_total": "worker_seconds",
    "fairlane_queue_depth": "queued",
    "fairlane_queue_runnable": "runnable",
    "fairlane_queue_oldest_due_seconds": "oldest_due_seconds",
    "fairlane_queue_workers": "workers",
}
OF_TENANT = {
    "fairlane_tenant_enqueued_total": "enqueued",
    "fairlane_tenant_worker_seconds_total": "worker_seconds",
    "fairlane_tenant_over_backlog_total": "over_backlog",
}


@dataclass(frozen=True)
class Figures:
    """The installation at one moment."""

    found: Mapping[str, Any]
    fairness: Mapping[str, float]  # by queue

    def fill(self, page: Page) -> None:
        _fill(page, self.found, self.fairness)


def _fill(page: Page, figures: Mapping[str, Any], fairness: Mapping[str, float]) -> None:
    for row in figures["queues"]:
        _queue(page, row, fairness.get(row["queue"], 1.0))
    page.add("fairlane_dlq_depth", sum(map(_pending, figures["queues"])))
    for row in figures["tenant_jobs"]:
        of = (row["tenant"] or OTHER, row["queue"])
        page.add("fairlane_org_job_count", row["queued"] + row["running"], *of)
        page.add("fairlane_tenant_oldest_due_seconds", row["oldest_due_seconds"], *of)
        states(page, "fairlane_tenant_jobs", of, {each: row[each] for each in LIVE})
    for row in figures["tenant_totals"]:
        of = (row["tenant"], row["queue"])
        for name, field in OF_TENANT.items():
            page.add(name, row[field], *of)
        states(page, "fairlane_tenant_completed_total", of, {each: row[each] for each in ENDS})
    workers = {state: figures["workers"].get(state, 0) for state in WORKER_STATES}
    states(page, "fairlane_workers", (), workers)
    page.add("fairlane_scheduler_lag_seconds", figures["scheduler_lag_seconds"])
    page.add("fairlane_scheduler_up", flag(figures["scheduler_leads"]))
    page.add("fairlane_house_kept", flag(figures["house_is_kept"]))
    for check, (checked, violations) in figures["audit"].items():
        page.add("fairlane_audit_checks_total", checked, check)
        page.add("fairlane_audit_violations_total", violations, check)


def _queue(page: Page, row: Mapping[str, Any], fairness: float) -> None:
    queue = row["queue"]
    for name, field in OF_QUEUE.items():
        page.add(name, row[field], queue)
    states(page, "fairlane_jobs_completed_total", (queue,), {each: row[each] for each in ENDS})
    states(page, "fairlane_queue_jobs", (queue,), {each: row[each] for each in LIVE})
    slots = {"all": row["slots"], "busy": row["running"]}
    states(page, "fairlane_worker_slots", (queue,), slots)
    settled = {"retried": row["replayed"], "resolved": row["resolved"], "ignored": row["ignored"]}
    states(page, "fairlane_dead_letters_settled_total", (queue,), settled)
    page.add("fairlane_dead_letters", _pending(row), queue)
    page.add("fairlane_queue_paused", flag(row["paused"]), queue)
    page.add("fairlane_fairness_index", fairness, queue)


def _pending(row: Mapping[str, Any]) -> int:
    """Parked, and not settled since; or settled, and that taken back."""
    settled = row["replayed"] + row["resolved"] + row["ignored"]
    found: int = row["dead_letter"] - settled + row["reopened"]
    return found
