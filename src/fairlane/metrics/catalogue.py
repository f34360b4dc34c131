"""Every metric, in one place: what is exposed, documented, charted and alerted on is named here."""

from dataclasses import dataclass

SERVER, WORKER, SCHEDULER = "server", "worker", "scheduler"
ALL = (SERVER, WORKER, SCHEDULER)

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"


@dataclass(frozen=True)
class Metric:
    """One name; a counter's ends in `_total`."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    parts: tuple[str, ...] = (SERVER,)  # whose /metrics has it


def _counter(name: str, labels: str, what: str, *parts: str) -> Metric:
    return Metric(name, COUNTER, tuple(labels.split()), what, parts or (SERVER,))


def _gauge(name: str, labels: str, what: str, *parts: str) -> Metric:
    return Metric(name, GAUGE, tuple(labels.split()), what, parts or (SERVER,))


def _histogram(name: str, labels: str, what: str, *parts: str) -> Metric:
    return Metric(name, HISTOGRAM, tuple(labels.split()), what, parts)


CATALOGUE: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        # Jobs, by totals that the verbs keep in the transaction of what they count.
        _counter("fairlane_jobs_enqueued_total", "queue", "Jobs enqueued"),
        _counter("fairlane_jobs_started_total", "queue", "Attempts started"),
        _counter(
            "fairlane_jobs_completed_total",
            "queue status",
            "Jobs that ended: succeeded, succeeded_with_errors, failed, canceled, dead_letter",
        ),
        _counter("fairlane_jobs_retried_total", "queue", "Attempts that failed and come again"),
        _counter("fairlane_jobs_stuck_total", "queue", "Attempts parked after twice their timeout"),
        _counter("fairlane_leases_lost_total", "queue", "Attempts whose worker died"),
        _counter(
            "fairlane_jobs_over_backlog_total", "queue", "Jobs accepted above a backlog limit"
        ),
        _counter(
            "fairlane_queue_latency_seconds_total",
            "queue",
            "Seconds that attempts waited from when they were due; by starts: the mean latency",
        ),
        _counter("fairlane_worker_seconds_total", "queue", "Seconds that attempts ran"),
        _counter(
            "fairlane_dead_letters_settled_total",
            "queue status",
            "Dead letters that people settled: retried, resolved, ignored",
        ),
        # How it stands.
        _gauge("fairlane_queue_depth", "queue", "Jobs that are due and wait for their start"),
        _gauge("fairlane_queue_jobs", "queue state", "Live jobs: queued, scheduled, running"),
        _gauge(
            "fairlane_queue_runnable",
            "queue",
            "Queued jobs that wait for nothing but a slot: within every limit, not paused",
        ),
        _gauge(
            "fairlane_queue_oldest_due_seconds",
            "queue",
            "How long the first in line that could start has been due",
        ),
        _gauge("fairlane_queue_paused", "queue", "1 while the queue is paused"),
        _gauge("fairlane_queue_workers", "queue", "Live workers that serve the queue"),
        _gauge("fairlane_worker_slots", "queue state", "Slots of live workers: all, busy"),
        _gauge("fairlane_workers", "state", "Workers: live, draining, lost, stopped"),
        _gauge("fairlane_dlq_depth", "", "Dead letters that wait for a person"),
        _gauge("fairlane_dead_letters", "queue", "Dead letters that wait for a person, by queue"),
        _gauge(
            "fairlane_fairness_index",
            "queue",
            "Jain's index of worker seconds by weight among tenants that competed: 1 is even",
        ),
        _gauge("fairlane_scheduler_lag_seconds", "", "How long a schedule or event has been due"),
        _gauge("fairlane_scheduler_up", "", "1 while a scheduler leads"),
        _gauge("fairlane_house_kept", "", "1 while a process rescues, promotes and sweeps"),
        _counter("fairlane_audit_checks_total", "check", "Looks of the self-audit"),
        _counter("fairlane_audit_violations_total", "check", "Broken promises that it found"),
        # Tenants: those with most, and the others together.
        _gauge("fairlane_org_job_count", "tenant queue", "Queued and running jobs of a tenant"),
        _gauge("fairlane_tenant_jobs", "tenant queue state", "Live jobs of a tenant"),
        _gauge(
            "fairlane_tenant_oldest_due_seconds",
            "tenant queue",
            "How long a tenant's first in line that could start has been due",
        ),
        _counter("fairlane_tenant_enqueued_total", "tenant queue", "Jobs enqueued"),
        _counter("fairlane_tenant_completed_total", "tenant queue status", "Jobs that ended"),
        _counter("fairlane_tenant_worker_seconds_total", "tenant queue", "Seconds attempts ran"),
        _counter(
            "fairlane_tenant_over_backlog_total",
            "tenant queue",
            "Jobs accepted above a backlog limit",
        ),
        # Processes.
        _gauge("fairlane_ready", "", "1 while the database answers and the schema fits"),
        _gauge("fairlane_sse_streams", "", "Open event streams of this server"),
        _histogram(
            "fairlane_jobs_duration_seconds",
            "queue definition outcome",
            "How long attempts ran in this worker",
            WORKER,
        ),
        _histogram(
            "fairlane_queue_latency_seconds",
            "queue",
            "From when a job was due to its start in this worker",
            WORKER,
        ),
        _gauge("fairlane_process_slots", "queue state", "Slots of this worker: all, busy", WORKER),
        _gauge("fairlane_scheduler_leads", "", "1 while this scheduler leads", SCHEDULER),
        _counter(
            "fairlane_trigger_fires_total",
            "kind outcome",
            "What this scheduler made of events and schedules",
            SCHEDULER,
        ),
        _gauge("fairlane_build_info", "version part", "Always 1", *ALL),
    )
}
