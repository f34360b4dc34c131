"""Which method goes to which queue, and the numbers of the queues.

They are those that Fairlane's built-in queues have, so nothing needs to be set up. An installation
with other numbers says so: `fairlane queues set bulk --starts-per-minute-per-tenant 20`.
"""

from typing import Any

QUEUE_CONFIG: dict[str, dict[str, Any]] = {
    "critical": {
        "workers": 4,
        "timeout_seconds": 60,
        "max_jobs_per_org": None,  # No limit for critical
        "retry_count": 3,
        "retry_delay": [10, 30, 60],  # Seconds between retries
        "job_types": [
            "dartwing_fax.send_fax",
            "dartwing_core.notifications.send_notification",
            "dartwing_core.auth.sync_keycloak_session",
            "dartwing_core.integrations.refresh_token",
        ],
    },
    "default": {
        "workers": 8,
        "timeout_seconds": 300,
        "max_jobs_per_org": 500,
        "retry_count": 3,
        "retry_delay": [60, 300, 900],
        "job_types": [
            "dartwing_core.sync.process_delta",
            "dartwing_core.webhooks.dispatch",
            "dartwing_core.email.send",
        ],
    },
    "bulk": {
        "workers": 2,
        "timeout_seconds": 600,
        "max_jobs_per_org": 100,
        "rate_limit_per_minute": 50,
        "retry_count": 2,
        "retry_delay": [300, 900],
        "job_types": [
            "dartwing_core.imports.process_batch",
            "dartwing_core.reports.generate",
            "dartwing_core.exports.full_export",
        ],
    },
}


def get_queue_for_job(method: str) -> str:
    """The queue that a method is routed to; default, where nobody says otherwise."""
    for name, config in QUEUE_CONFIG.items():
        if method in config["job_types"]:
            return name
    return "default"
