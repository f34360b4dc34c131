"""Rows as the API and `--json` show them: one function for both, so that they cannot differ."""

from collections.abc import Mapping, Sequence
from typing import Any

# In the order that a person reads them.
JOB = (
    *("id", "short_id", "tenant", "tenant_id", "definition_key", "version", "queue", "status"),
    *("source", "source_ref", "priority", "payload", "inputs_hash", "dedupe_key"),
    *("concurrency_key", "correlation_id", "created_at", "scheduled_for", "queued_at"),
    *("started_at", "finished_at"),
    *("attempt_count", "max_attempts", "worker", "phase", "progress", "errors", "last_error"),
    *("retry_of", "replays", "created_by", "trace_id"),
)
DEAD_LETTER = (
    *("id", "short_id", "tenant", "definition_key", "version", "queue", "status", "reason"),
    *("source", "source_ref", "priority", "payload", "inputs_hash", "dedupe_key"),
    *("concurrency_key", "correlation_id", "created_at", "scheduled_for", "queued_at"),
    *("started_at", "died_at", "attempt_count", "max_attempts", "lost", "worker", "phase"),
    *("progress", "errors", "last_error", "fingerprint", "retry_of", "replays", "created_by"),
    *("notes", "assignee", "settled_at", "settled_by"),
)
OPERATION = (
    *("id", "tenant", "action", "filter", "note", "per_second", "state", "estimate", "at_least"),
    *("matched", "done", "skipped", "failed", "failures", "error", "created_by", "created_at"),
    *("updated_at", "ended_at"),
)
# What jobs and people say. The views leave out what the definition calls secret; what looks like a
# secret is left out here.
SPOKEN = ("payload", "progress", "errors", "last_error", "error")


def job(row: Mapping[str, Any]) -> dict[str, Any]:
    """A job, its secrets hidden."""
    return _shown(row, JOB)


def dead_letter(row: Mapping[str, Any]) -> dict[str, Any]:
    return _shown(row, DEAD_LETTER)


def operation(row: Mapping[str, Any]) -> dict[str, Any]:
    from fairlane.core.json import loads

    shown = {name: row[name] for name in OPERATION}
    for name in ("filter", "failures"):
        if isinstance(shown[name], str):
            shown[name] = loads(shown[name])
    return shown


def message(row: Mapping[str, Any], app_id: str) -> dict[str, Any]:
    """A job as the message that a broker would carry."""
    return without_secrets(
        {
            "job_id": row["id"],
            "tenant_id": row["tenant_id"],
            "app_id": app_id,
            "definition": row["definition_key"],
            "version": row["version"],
            "inputs_hash": row["inputs_hash"],
            "requested_at": row["created_at"],
            "payload": row["payload"],
            "priority": row["priority"],
        }
    )


def definition(row: Mapping[str, Any]) -> dict[str, Any]:
    """A definition as it is written in files; what its executor needs is under its name."""
    from fairlane.definitions.definition import Definition
    from fairlane.definitions.shape import to_shape

    return to_shape(Definition.of(row))


def page(items: Sequence[Any], cursor: str | None = None) -> dict[str, Any]:
    return {"items": items, "next_cursor": cursor}


def without_secrets(shown: Mapping[str, Any]) -> dict[str, Any]:
    from fairlane.core.json import loads
    from fairlane.redact import Redactor

    redactor = Redactor()
    found = dict(shown)
    for name in SPOKEN:
        if (value := found.get(name)) is not None:
            # asyncpg gives jsonb as its text unless told otherwise; none of these is a string.
            found[name] = redactor.value(loads(value) if isinstance(value, str) else value)
    return found


def _shown(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    from fairlane.ids import short_id

    shown = {name: row[name] for name in names if name != "short_id"}
    return {"id": shown.pop("id"), "short_id": short_id(row["id"]), **without_secrets(shown)}
