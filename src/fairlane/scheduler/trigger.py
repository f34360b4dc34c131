"""A trigger as the database keeps it, and as it is shown."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Self
from uuid import UUID

from fairlane.core import json
from fairlane.core.connect import Record
from fairlane.scheduler.cron import Cron
from fairlane.scheduler.filter import Filter
from fairlane.scheduler.template import Template

INSTALLATION = UUID(int=0)

# In the order that a person reads them.
SHOWN = (
    *("id", "tenant", "label", "is_enabled", "trigger_type", "event_name", "filter", "cron_expr"),
    *("timezone", "definition_key", "version", "payload_template", "dedupe_window_seconds"),
    *("missed", "overlap", "jitter_seconds", "source", "next_at", "revision", "created_by"),
    *("created_at", "updated_at"),
)


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """A rule that makes jobs. `tenant_id` is INSTALLATION where it is no tenant's."""

    id: UUID
    tenant_id: UUID
    label: str
    trigger_type: str
    definition_key: str | None
    version: str | None
    payload_template: dict[str, Any]
    dedupe_window_seconds: int = 0
    missed: str = "once"
    overlap: str = "allow"
    jitter_seconds: int = 0
    is_enabled: bool = True
    event_name: str | None = None
    filter: dict[str, Any] | None = None
    cron_expr: str | None = None
    timezone: str | None = None
    chore: str | None = None
    source: str = "person"
    next_at: datetime | None = None
    due_at: datetime | None = None
    revision: int = 1
    tenant: str | None = None
    created_by: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def name(self) -> str:
        """What a person knows it by."""
        return f'"{self.label}" of {self.tenant or "the installation"}'

    @classmethod
    def of(cls, row: Mapping[str, Any] | Record) -> Self:
        """From a row of fairlane.triggers or of fairlane.trigger."""
        fields = {name: value for name, value in row.items() if name in cls.__dataclass_fields__}
        for name in ("payload_template", "filter"):
            if isinstance(fields[name], str):
                fields[name] = json.loads(fields[name])
        return cls(**fields)

    @cached_property
    def definition_name(self) -> tuple[str, str | None]:
        return self.definition_key or "", self.version

    @cached_property
    def actor(self) -> str:
        """Who it is that makes its jobs."""
        return f"trigger:{self.id}"

    @cached_property
    def template(self) -> Template:
        return Template(self.payload_template)

    @cached_property
    def takes(self) -> Filter:
        return Filter(self.filter)

    @cached_property
    def cron(self) -> Cron:
        assert self.cron_expr is not None
        return Cron(self.cron_expr, self.timezone or "UTC")

    def due(self, moment: datetime) -> datetime:
        """When the run of a time is made. The same trigger and time always wait as long, so that
        whoever schedules comes to the same answer."""
        if not self.jitter_seconds:
            return moment
        told = hashlib.sha256(f"{self.id} {moment.timestamp():.0f}".encode()).digest()
        share = int.from_bytes(told[:6]) / 2**48
        # Never past the next time: runs stay in their order, and none catches up with another.
        following = self.cron.after(moment)
        most = self.jitter_seconds
        if following is not None:
            most = min(most, int((following - moment).total_seconds()))
        return moment + timedelta(seconds=share * most)

    def shape(self) -> dict[str, Any]:
        """As the API and `--json` show it."""
        shown = {name: getattr(self, name) for name in SHOWN}
        return shown if self.chore is None else {**shown, "chore": self.chore}
