"""What may run."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from fairlane.api.models.base import Document, Out


class DefinitionOut(Out):
    id: UUID
    key: str
    version: str
    description: str
    executor: Literal["python", "command", "http"]
    arg_schema: Document
    result_schema: Document | None
    queue: str
    timeout_seconds: int | None
    max_attempts: int | None
    retry_delays: list[int] | None
    max_running: int | None
    max_running_per_tenant: int | None
    starts_per_minute: int | None
    reuse: bool
    single_flight: bool
    dead_letter: bool
    redact: list[str]
    is_active: bool
    revision: int
    created_at: datetime
    updated_at: datetime


class DefinitionList(Out):
    items: list[DefinitionOut]
    next_cursor: str | None


class DefinitionFields(BaseModel):
    """As in a file of definitions; each field is checked, and every fault told, at once."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "key": "sync-dropbox",
                    "description": "Sync provider updates for a tenant",
                    "executor": "command",
                    "command": {"argv": ["zoltag", "sync", "--path", "{payload.path}"]},
                    "arg_schema": {
                        "type": "object",
                        "properties": {"path": {"type": "string", "default": "/"}},
                        "additionalProperties": False,
                    },
                    "timeout_seconds": 3600,
                    "max_attempts": 3,
                }
            ]
        },
    )
