"""A definition as the database keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from fairlane.core import json
from fairlane.core.connect import Record

if TYPE_CHECKING:
    from fairlane.schemas import Schema


@dataclass(frozen=True, kw_only=True)
class Definition:
    """An allow-listed kind of job. What is None is the queue's to say."""

    key: str
    version: str = "1"
    description: str = ""
    executor: str = "python"
    settings: dict[str, Any] = field(default_factory=dict)  # the executor's own
    arg_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    result_schema: dict[str, Any] | None = None
    queue: str = "default"
    timeout_seconds: int | None = None
    max_attempts: int | None = None
    retry_delays: tuple[int, ...] | None = None
    max_running: int | None = None
    max_running_per_tenant: int | None = None
    starts_per_minute: int | None = None
    reuse: bool = False
    single_flight: bool = False
    dead_letter: bool = True
    redact: tuple[str, ...] = ()
    is_active: bool = True
    id: UUID | None = None
    revision: int = 1  # rises with every change
    set_live: tuple[str, ...] = ()  # fields that a person has set over what the code says
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any] | Record) -> Self:
        """From a row of fairlane.definition."""
        settings = _json(row["settings"])
        return cls(
            id=row["id"],
            revision=row["revision"],
            key=row["key"],
            version=row["version"],
            description=row["description"],
            executor=row["executor"],
            settings=settings,
            arg_schema=_json(row["arg_schema"]),
            result_schema=row["result_schema"] and _json(row["result_schema"]),
            queue=row["queue"],
            timeout_seconds=row["timeout_seconds"],
            max_attempts=row["max_attempts"],
            retry_delays=None if row["retry_delays"] is None else tuple(row["retry_delays"]),
            max_running=row["max_running"],
            max_running_per_tenant=row["max_running_per_tenant"],
            starts_per_minute=row["starts_per_minute"],
            reuse=row["reuse"],
            single_flight=row["single_flight"],
            dead_letter=row["dead_letter"],
            redact=tuple(row["redact"]),
            is_active=row["is_active"],
            set_live=tuple(sorted(_json(row["declared"]))),
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )

    @cached_property
    def schema(self) -> "Schema":
        """What payloads are held against, compiled."""
        from fairlane import schemas

        return schemas.compile(self.arg_schema, payload=True)

    def __str__(self) -> str:
        return f'definition "{self.key}" version {self.version}'


def _json(value: Any) -> dict[str, Any]:
    """A jsonb object, whether or not the connection reads JSON by itself."""
    found: dict[str, Any] = json.loads(value) if isinstance(value, str) else dict(value)
    return found
