"""Definitions and triggers of the system under test, beside its tasks."""

import sys
from pathlib import Path
from typing import Any

from faults import bodies
from faults.plan import TENANTS


def definitions(file: Path) -> list[dict[str, Any]]:
    argv = [sys.executable, "-S", "-E", str(bodies.PATH), "{payload.seconds}"]
    return [
        {
            "key": "program",
            "executor": "command",
            "command": {"argv": argv, "env": {bodies.VARIABLE: str(file)}},
            "arg_schema": {
                "type": "object",
                "properties": {"n": {"type": "integer"}, "seconds": {"type": "string"}},
            },
            "queue": "bulk",
            "max_attempts": 4,
            "retry_delays": [1],
            "timeout_seconds": 25,
        }
    ]


def triggers() -> list[tuple[str, dict[str, Any]]]:
    """For every tenant an event and three schedules, one a policy for what was missed."""
    found: list[tuple[str, dict[str, Any]]] = []
    for tenant in TENANTS:
        event = {
            "label": "on event",
            "trigger_type": "event",
            "event_name": "thing.happened",
            "definition_key": "on_event",
            "payload_template": {"n": "{{event.n}}"},
        }
        found.append((tenant, event))
        found += [
            (
                tenant,
                {
                    "label": f"each minute, {missed}",
                    "trigger_type": "schedule",
                    "cron_expr": "* * * * *",
                    "timezone": "UTC",
                    "definition_key": "on_schedule",
                    "missed": missed,
                },
            )
            for missed in ("all", "once", "skip")
        ]
    return found
