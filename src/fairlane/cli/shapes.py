"""Rows as the API shows them."""

from collections.abc import Mapping, Sequence
from typing import Any

REDACTED = "[redacted]"


def job(row: Mapping[str, Any]) -> dict[str, Any]:
    """A job, its secrets hidden. The row has the definition's `redact` beside the job."""
    from fairlane.job import Job

    return Job.of({**row, "payload": redact(row["payload"], row["redact"])}).as_dict()


def dead_letter(row: Mapping[str, Any]) -> dict[str, Any]:
    from fairlane.ids import short_id

    shown = {name: value for name, value in row.items() if name not in ("id", "redact")}
    shown["payload"] = redact(row["payload"], row["redact"])
    return {"id": row["id"], "short_id": short_id(row["id"]), **shown}


def message(row: Mapping[str, Any], app_id: str) -> dict[str, Any]:
    """A job as the message that a broker would carry."""
    return {
        "job_id": row["id"],
        "tenant_id": row["tenant_id"],
        "app_id": app_id,
        "definition": row["definition_key"],
        "version": row["version"],
        "inputs_hash": row["inputs_hash"],
        "requested_at": row["created_at"],
        "payload": redact(row["payload"], row["redact"]),
        "priority": row["priority"],
    }


def definition(row: Mapping[str, Any]) -> dict[str, Any]:
    """A definition as it is written in files; what its executor needs is under its name."""
    shown = dict(row)
    settings = shown.pop("settings")
    if row["executor"] != "python" or settings:
        shown[row["executor"]] = settings
    return shown


def page(items: Sequence[Any], cursor: str | None = None) -> dict[str, Any]:
    return {"items": items, "next_cursor": cursor}


def redact(value: Any, pointers: Sequence[str]) -> Any:
    """A copy without what the JSON pointers lead to; a pointer that leads nowhere is no error."""
    for pointer in pointers:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
        value = _without(value, parts)
    return value


def _without(value: Any, parts: list[str]) -> Any:
    if not parts:
        return REDACTED
    first, *rest = parts
    match value:
        case dict() if first in value:
            return {**value, first: _without(value[first], rest)}
        case list() if first.isdigit() and int(first) < len(value):
            at = int(first)
            return [*value[:at], _without(value[at], rest), *value[at + 1 :]]
        case _:
            return value
