"""Alerts for Prometheus, from one list: `fairlane metrics rules` prints them.

Every server answers with the same figures of the installation, so these take one of them: `max by`
what is left when the server's own labels are gone.
"""

from dataclasses import dataclass

import yaml

WARNING, CRITICAL, INFO = "warning", "critical", "info"


@dataclass(frozen=True)
class Rule:
    name: str
    expr: str
    lasts: str  # before it fires
    severity: str
    summary: str
    action: str  # what to do next

    def document(self) -> dict[str, object]:
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.lasts,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "action": self.action},
        }


MAIN = (
    "fairlane_queue_depth",
    "fairlane_dlq_depth",
    "fairlane_queue_oldest_due_seconds",
    "fairlane_workers",
    "fairlane_scheduler_lag_seconds",
)


def by(labels: str, expr: str) -> str:
    """One answer of the servers' equal ones."""
    return f"max by ({labels}) ({expr})"


QUEUE = "{{ $labels.queue }}"

RULES = (
    Rule(
        "FairlaneQueueBacklog",
        f"{by('queue', 'fairlane_queue_depth')} > 1000",
        "15m",
        WARNING,
        f"queue {QUEUE} has {{{{ $value }}}} jobs waiting",
        "add workers: fairlane worker --queue NAME=SLOTS; whose they are: fairlane tenants list",
    ),
    Rule(
        "FairlaneStartLatency",
        "histogram_quantile(0.95, sum by (queue, le) "
        "(rate(fairlane_queue_latency_seconds_bucket[10m]))) > 60",
        "10m",
        WARNING,
        f"one job in twenty of queue {QUEUE} starts over {{{{ $value }}}} s after it was due",
        "add workers, or raise the slots of those there are",
    ),
    Rule(
        "FairlaneOldestDue",
        f"{by('queue', 'fairlane_queue_oldest_due_seconds')} > 900",
        "5m",
        WARNING,
        f"a job of queue {QUEUE} could start and has been due for {{{{ $value }}}} s",
        "why it waits: fairlane jobs explain JOB",
    ),
    Rule(
        "FairlaneDeadLetters",
        "max(fairlane_dlq_depth) > 50",
        "0m",
        WARNING,
        "{{ $value }} dead letters wait for a person",
        "fairlane dead list, then replay, resolve or ignore",
    ),
    Rule(
        "FairlaneDeadLettersGrowing",
        by("queue", 'increase(fairlane_jobs_completed_total{status="dead_letter"}[1h])') + " > 20",
        "0m",
        WARNING,
        f"{{{{ $value }}}} jobs of queue {QUEUE} were parked within an hour",
        "fairlane dead list",
    ),
    Rule(
        "FairlaneFailureRate",
        f"{by('queue', 'rate(fairlane_jobs_retried_total[15m])')} > "
        f"0.5 * {by('queue', 'rate(fairlane_jobs_started_total[15m])')} "
        f"and {by('queue', 'rate(fairlane_jobs_started_total[15m])')} > 0.1",
        "15m",
        WARNING,
        f"more than half of the attempts of queue {QUEUE} fail",
        "fairlane jobs list --status failed, and what their logs say",
    ),
    Rule(
        "FairlaneStuckJobs",
        f"{by('queue', 'increase(fairlane_jobs_stuck_total[15m])')} > 0",
        "0m",
        CRITICAL,
        f"jobs of queue {QUEUE} ran for more than twice their timeout and were parked",
        'fairlane dead list; work that must be stopped wants isolation="process"',
    ),
    Rule(
        "FairlaneTenantAtLimit",
        f"{by('tenant, queue', 'increase(fairlane_tenant_over_backlog_total[15m])')} > 0",
        "0m",
        INFO,
        "tenant {{ $labels.tenant }} enqueues above its backlog limit in queue " + QUEUE,
        "fairlane tenants show TENANT; a larger plan, or a word with them",
    ),
    Rule(
        "FairlaneLeasesLost",
        f"{by('queue', 'increase(fairlane_leases_lost_total[15m])')} > 0",
        "0m",
        CRITICAL,
        f"workers died with jobs of queue {QUEUE}; they were given to others",
        "fairlane workers list; look for kernels that killed them for memory",
    ),
    Rule(
        "FairlaneWorkersLost",
        'max(max_over_time(fairlane_workers{state="lost"}[5m]) '
        '- min_over_time(fairlane_workers{state="lost"}[5m])) > 0',
        "0m",
        CRITICAL,
        "a worker has stopped answering",
        "fairlane workers list; its supervisor should have started another",
    ),
    Rule(
        "FairlaneNoWorker",
        f"{by('queue', 'fairlane_queue_runnable')} > 0 and "
        f"{by('queue', 'fairlane_queue_workers')} == 0",
        "5m",
        CRITICAL,
        f"queue {QUEUE} has work and no worker",
        "fairlane worker --queue NAME=SLOTS",
    ),
    Rule(
        "FairlaneNotMoving",
        f"{by('queue', 'fairlane_queue_runnable')} > 0 and "
        f"{by('queue', 'increase(fairlane_jobs_started_total[10m])')} == 0 and "
        f"{by('queue', 'fairlane_queue_oldest_due_seconds')} > 600",
        "0m",
        CRITICAL,
        f"queue {QUEUE} has work that could start, and nothing starts",
        "fairlane doctor",
    ),
    Rule(
        "FairlaneTenantStarved",
        f"{by('tenant, queue', 'fairlane_tenant_oldest_due_seconds')} > 300 and on (queue) "
        f"{by('queue', 'rate(fairlane_jobs_started_total[5m])')} > 0",
        "5m",
        WARNING,
        "tenant {{ $labels.tenant }} waits in queue " + QUEUE + " while others are served",
        "fairlane jobs explain JOB; the weights of the tenants",
    ),
    Rule(
        "FairlaneUnfair",
        f"{by('queue', 'fairlane_fairness_index')} < 0.5",
        "15m",
        WARNING,
        f"tenants that compete for queue {QUEUE} have had very different shares",
        "GET /api/v1/admin/fairness",
    ),
    Rule(
        "FairlaneSchedulerLate",
        "max(fairlane_scheduler_lag_seconds) > 60 or max(fairlane_scheduler_up) == 0",
        "2m",
        CRITICAL,
        "schedules and events wait: nobody schedules, or it does not keep up",
        "fairlane scheduler",
    ),
    Rule(
        "FairlaneHouseNotKept",
        "max(fairlane_house_kept) == 0",
        "2m",
        CRITICAL,
        "nobody rescues lost jobs and promotes scheduled ones",
        "start a worker: fairlane worker",
    ),
    Rule(
        "FairlanePromiseBroken",
        f"{by('check', 'increase(fairlane_audit_violations_total[1h])')} > 0",
        "0m",
        CRITICAL,
        "the self-audit found {{ $labels.check }} broken",
        "fairlane doctor, and report it: this must never happen",
    ),
    Rule(
        "FairlaneNotReady",
        "min by (instance) (fairlane_ready) == 0",
        "1m",
        CRITICAL,
        "server {{ $labels.instance }} cannot serve: the database is away, or its schema is old",
        "GET /readyz says which; fairlane migrate",
    ),
    *(
        Rule(
            f"FairlaneAbsent{''.join(word.title() for word in name.split('_')[1:])}",
            f"absent({name})",
            "5m",
            CRITICAL,
            f"{name} is gone: whatever is told by it is silent now",
            "is the server scraped, and does its database answer?",
        )
        for name in MAIN
    ),
)


def rules() -> str:
    """The file that Prometheus reads."""
    document = {"groups": [{"name": "fairlane", "rules": [rule.document() for rule in RULES]}]}
    return yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)
