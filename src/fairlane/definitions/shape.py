"""A definition as files write it and the API shows it, and as the database takes it."""

from collections.abc import Collection
from typing import Any

from fairlane.definitions.definition import Definition

# In the order that a person reads them. The executor's settings stand between, under its name.
HEAD = ("key", "version", "description", "executor")
REST = (
    *("arg_schema", "result_schema", "queue", "timeout_seconds", "max_attempts", "retry_delays"),
    *("max_running", "max_running_per_tenant", "starts_per_minute", "reuse", "single_flight"),
    *("dead_letter", "redact", "is_active"),
)
EXECUTORS = ("python", "command", "http")
WRITTEN = (*HEAD, *EXECUTORS, *REST)  # what a definition may say
KEPT = ("id", "revision", "set_live", "created_at", "updated_at")  # what the database adds


def to_shape(definition: Definition) -> dict[str, Any]:
    """As the API and `--json` show it."""
    executor = definition.executor
    own = {executor: definition.settings} if definition.settings or executor != "python" else {}
    return {
        "id": definition.id,
        **{name: getattr(definition, name) for name in HEAD},
        **own,
        **{name: _listed(getattr(definition, name)) for name in REST},
        **{name: _listed(getattr(definition, name)) for name in KEPT if name != "id"},
    }


def to_written(definition: Definition) -> dict[str, Any]:
    """As a file would say it."""
    return {name: value for name, value in to_shape(definition).items() if name not in KEPT}


def to_row(definition: Definition, said: Collection[str] | None = None) -> dict[str, Any]:
    """As fairlane.define and its kin take it: only what was `said`, in the names of columns."""
    names = (*HEAD, "settings", *REST)
    row = {name: _listed(getattr(definition, name)) for name in names}
    return {
        name: value for name, value in row.items() if said is None or name == "key" or name in said
    }


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
