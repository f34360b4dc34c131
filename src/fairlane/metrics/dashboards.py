"""Two Grafana dashboards: for who runs the installation, and for who looks at one tenant."""

from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT, COLUMNS = 8, 8, 3
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    title: str
    expr: str
    legend: str
    unit: str = "short"


def _rate(name: str, labels: str = "queue", where: str = "") -> str:
    return f"max by ({labels}) (rate({name}{where}[$__rate_interval]))"


def _quantile(of: str, name: str) -> str:
    return f"histogram_quantile({of}, sum by (queue, le) (rate({name}_bucket[$__rate_interval])))"


OPERATOR = (
    Panel("Enqueued", _rate("fairlane_jobs_enqueued_total"), "{{queue}}", "ops"),
    Panel("Started", _rate("fairlane_jobs_started_total"), "{{queue}}", "ops"),
    Panel(
        "Ended",
        _rate("fairlane_jobs_completed_total", "queue, status"),
        "{{queue}} {{status}}",
        "ops",
    ),
    Panel("Waiting", "max by (queue) (fairlane_queue_depth)", "{{queue}}"),
    Panel("Could start now", "max by (queue) (fairlane_queue_runnable)", "{{queue}}"),
    Panel("Live", "max by (queue, state) (fairlane_queue_jobs)", "{{queue}} {{state}}"),
    Panel("Oldest due", "max by (queue) (fairlane_queue_oldest_due_seconds)", "{{queue}}", "s"),
    Panel(
        "Start latency, median",
        _quantile("0.5", "fairlane_queue_latency_seconds"),
        "{{queue}}",
        "s",
    ),
    Panel(
        "Start latency, p95", _quantile("0.95", "fairlane_queue_latency_seconds"), "{{queue}}", "s"
    ),
    Panel(
        "Start latency, mean",
        f"{_rate('fairlane_queue_latency_seconds_total')} / {_rate('fairlane_jobs_started_total')}",
        "{{queue}}",
        "s",
    ),
    Panel(
        "Run duration, median", _quantile("0.5", "fairlane_jobs_duration_seconds"), "{{queue}}", "s"
    ),
    Panel(
        "Run duration, p95", _quantile("0.95", "fairlane_jobs_duration_seconds"), "{{queue}}", "s"
    ),
    Panel("Worker seconds", _rate("fairlane_worker_seconds_total"), "{{queue}}"),
    Panel("Slots", "max by (queue, state) (fairlane_worker_slots)", "{{queue}} {{state}}"),
    Panel(
        "Slots by process",
        "sum by (instance, state) (fairlane_process_slots)",
        "{{instance}} {{state}}",
    ),
    Panel("Workers", "max by (state) (fairlane_workers)", "{{state}}"),
    Panel("Workers by queue", "max by (queue) (fairlane_queue_workers)", "{{queue}}"),
    Panel("Retries", _rate("fairlane_jobs_retried_total"), "{{queue}}", "ops"),
    Panel("Leases lost", _rate("fairlane_leases_lost_total"), "{{queue}}", "ops"),
    Panel("Stuck", _rate("fairlane_jobs_stuck_total"), "{{queue}}", "ops"),
    Panel("Dead letters", "max(fairlane_dlq_depth)", "waiting"),
    Panel("Dead letters by queue", "max by (queue) (fairlane_dead_letters)", "{{queue}}"),
    Panel(
        "Dead letters settled",
        _rate("fairlane_dead_letters_settled_total", "queue, status"),
        "{{queue}} {{status}}",
        "ops",
    ),
    Panel("Fairness", "max by (queue) (fairlane_fairness_index)", "{{queue}}", "percentunit"),
    Panel("Busiest tenants", "max by (tenant) (fairlane_org_job_count)", "{{tenant}}"),
    Panel("Above backlog limits", _rate("fairlane_jobs_over_backlog_total"), "{{queue}}", "ops"),
    Panel("Scheduler lag", "max(fairlane_scheduler_lag_seconds)", "lag", "s"),
    Panel(
        "Trigger fires",
        "sum by (kind, outcome) (rate(fairlane_trigger_fires_total[$__rate_interval]))",
        "{{kind}} {{outcome}}",
        "ops",
    ),
    Panel("Broken promises", _rate("fairlane_audit_violations_total", "check"), "{{check}}", "ops"),
    Panel("Event streams", "sum(fairlane_sse_streams)", "open"),
)

MINE = '{tenant="$tenant"}'

TENANT = (
    Panel("Jobs", f"max by (queue, state) (fairlane_tenant_jobs{MINE})", "{{queue}} {{state}}"),
    Panel("Queued and running", f"max by (queue) (fairlane_org_job_count{MINE})", "{{queue}}"),
    Panel(
        "Oldest due",
        f"max by (queue) (fairlane_tenant_oldest_due_seconds{MINE})",
        "{{queue}}",
        "s",
    ),
    Panel("Enqueued", _rate("fairlane_tenant_enqueued_total", "queue", MINE), "{{queue}}", "ops"),
    Panel(
        "Ended",
        _rate("fairlane_tenant_completed_total", "queue, status", MINE),
        "{{queue}} {{status}}",
        "ops",
    ),
    Panel(
        "Worker seconds", _rate("fairlane_tenant_worker_seconds_total", "queue", MINE), "{{queue}}"
    ),
    Panel(
        "Above its backlog limit",
        _rate("fairlane_tenant_over_backlog_total", "queue", MINE),
        "{{queue}}",
        "ops",
    ),
)


def operator() -> dict[str, Any]:
    return _dashboard("fairlane-operator", "Fairlane", OPERATOR, [])


def tenant() -> dict[str, Any]:
    chosen = {
        "name": "tenant",
        "label": "Tenant",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": "label_values(fairlane_org_job_count, tenant)", "refId": "tenant"},
        "refresh": 2,
        "sort": 1,
    }
    return _dashboard("fairlane-tenant", "Fairlane: a tenant", TENANT, [chosen])


DASHBOARDS = {"operator": operator, "tenant": tenant}


def _dashboard(
    uid: str, title: str, panels: tuple[Panel, ...], variables: list[dict[str, Any]]
) -> dict[str, Any]:
    source = {"name": "datasource", "label": "Source", "type": "datasource", "query": "prometheus"}
    return {
        "uid": uid,
        "title": title,
        "tags": ["fairlane"],
        "timezone": "",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [source, *variables]},
        "annotations": {"list": [_versions()]},
        "panels": [_panel(nth, panel) for nth, panel in enumerate(panels)],
    }


def _versions() -> dict[str, Any]:
    """A line where another version began to run."""
    return {
        "name": "Versions",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "blue",
        "expr": "count by (version) (fairlane_build_info) "
        "unless count by (version) (fairlane_build_info offset 5m)",
        "titleFormat": "{{version}}",
    }


def _panel(nth: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(nth, COLUMNS)
    return {
        "id": nth + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": "A",
                "datasource": SOURCE,
                "expr": panel.expr,
                "legendFormat": panel.legend,
            }
        ],
    }
