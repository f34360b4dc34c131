"""Makes a job of a trigger and an occasion, or tells why there is none."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fairlane import schemas
from fairlane.definitions.accept import fitted
from fairlane.definitions.definition import Definition
from fairlane.errors import DefinitionInactive, FairlaneError, Faulty, PayloadInvalid
from fairlane.ids import uuid7
from fairlane.redact import Redactor
from fairlane.scheduler.template import FieldMissing
from fairlane.scheduler.trigger import Trigger

log = logging.getLogger("fairlane.scheduler")


@dataclass(frozen=True)
class Tenant:
    """For whom a job is made."""

    id: UUID
    slug: str
    name: str

    def shown(self) -> dict[str, str]:
        return {"id": str(self.id), "slug": self.slug, "name": self.name}


@dataclass(slots=True)
class Made:
    """What came of one trigger on one occasion."""

    trigger: Trigger
    tenant_id: UUID
    status: str  # of the delivery or firing
    job: dict[str, Any] | None = None
    job_id: UUID | None = None  # its own, or the one that stands for it
    error: dict[str, Any] | None = None
    occasion: Any = None  # the number of an event; the time of a schedule, and what it missed

    @property
    def window(self) -> int:
        return self.trigger.dedupe_window_seconds

    @property
    def key(self) -> tuple[UUID, UUID, str]:
        """Equal for the same work of the same trigger."""
        assert self.job is not None
        return self.tenant_id, self.trigger.id, self.job["inputs_hash"]

    def drop(self, status: str, job_id: UUID | None = None) -> None:
        """There is to be no job after all."""
        self.status, self.job, self.job_id = status, None, job_id

    def refuse(self, error: Mapping[str, Any]) -> None:
        self.drop("error")
        self.error = dict(error)


def make(
    trigger: Trigger,
    tenant: Tenant,
    values: Mapping[str, Any],
    definition: Definition | None,
    about: Mapping[str, Any],
    occasion: Any = None,
    size: int = 0,
) -> Made:
    """A job for a tenant; `values`, of `size` characters, are what the template may look into,
    `about` is what the job says of where it comes from."""
    made = Made(trigger, tenant.id, "enqueued", occasion=occasion)
    if not trigger.is_enabled:
        made.drop("disabled")
        return made
    try:
        made.job = job_of(trigger, tenant, values, definition, about, size)
        made.job_id = made.job["id"]
    except FairlaneError as error:
        made.refuse(told(error, definition))
    except Exception as error:
        # One trigger that cannot be followed must not hold up the others.
        log.exception("trigger %s cannot be followed", trigger.id)
        made.refuse({"type": type(error).__name__, "message": "the trigger cannot be followed"})
    return made


def job_of(
    trigger: Trigger,
    tenant: Tenant,
    values: Mapping[str, Any],
    definition: Definition | None,
    about: Mapping[str, Any],
    size: int = 0,
) -> dict[str, Any]:
    if definition is None:
        version = f" version {trigger.version}" if trigger.version else ""
        raise PayloadInvalid(f'definition "{trigger.definition_key}"{version} is unknown')
    if not definition.is_active:
        raise DefinitionInactive(
            f"{definition} is not active; activate it with: fairlane definitions resume "
            f"{definition.key} --version {definition.version}"
        )
    payload = payload_of(trigger, tenant, values, definition, size)
    job = {
        "id": uuid7(),
        "resend": False,
        "tenant": tenant.slug,
        "definition": definition.key,
        "version": definition.version,
        "payload": payload,
        "inputs_hash": schemas.inputs_hash(definition.key, definition.version, payload),
        "created_by": trigger.actor,
        **about,
    }
    if trigger.overlap == "queue":
        job["concurrency_key"] = trigger.actor
    return job


def payload_of(
    trigger: Trigger,
    tenant: Tenant,
    values: Mapping[str, Any],
    definition: Definition,
    size: int = 0,
) -> dict[str, Any]:
    """What the template makes of the values, if the definition takes it."""
    template = trigger.template
    if not template.is_constant:
        if not template.looks_only_into_events:
            shown = {"id": str(trigger.id), "label": trigger.label}
            values = {**values, "tenant": tenant.shown(), "trigger": shown}
        template.refuse_bombs(values, size)
    return fitted(
        definition.key,
        definition.schema,
        definition.arg_schema,
        template.render(values),
        executor=definition.executor,
        settings=definition.settings,
    )


def told(error: Exception, definition: Definition | None) -> dict[str, Any]:
    """An error as it is kept: nothing in it quotes what the definition calls secret."""
    found: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, FieldMissing):
        found |= {"field": error.name, "pointer": error.pointer}
    if isinstance(error, Faulty) and error.faults and definition is not None:
        faults = Redactor.of(definition).faults(error.faults)
        found["message"] = f'the payload of "{definition.key}" does not fit'
        found["faults"] = [{"pointer": each.pointer, "detail": each.message} for each in faults]
        found["message"] += ": " + "; ".join(str(each) for each in faults[:3])
    return found
