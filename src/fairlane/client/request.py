"""Request: what is asked of enqueue, checked before anything is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from fairlane.core import json
from fairlane.errors import Fault, PayloadInvalid, PayloadTooLarge, RequestInvalid
from fairlane.ids import parse_id
from fairlane.schemas.schema import listed
from fairlane.schemas.telling import bounded

_OURS = ("body", "inputs_hash", "item")
_TEXTS = ("version", "queue", "dedupe_key", "concurrency_key", "correlation_id")


@dataclass(frozen=True, kw_only=True)
class Request:
    """One job to enqueue; `enqueue_many` takes a list of them.

    Without an id it stands for a new job each time it is sent. With one it is the same job however
    often it is sent.
    """

    tenant: str
    definition_key: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None
    queue: str | None = None
    priority: int | None = None
    scheduled_for: datetime | timedelta | None = None
    dedupe_key: str | None = None
    concurrency_key: str | None = None
    correlation_id: str | None = None
    max_attempts: int | None = None
    id: UUID | str | None = None
    reuse: bool | None = None

    # The payload as it goes out, once it has been checked: nobody can change it any more.
    body: bytes | None = field(default=None, repr=False, compare=False)
    # Of the payload, once it has been validated.
    inputs_hash: str | None = field(default=None, repr=False, compare=False)
    # Which of many it is, for its faults to name it.
    item: int | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked_text("tenant", self.tenant)
        checked_text("definition_key", self.definition_key)
        for name in _TEXTS:
            if (value := getattr(self, name)) is not None:
                checked_text(name, value)
        _check_number("priority", self.priority, -(2**31))
        _check_number("max_attempts", self.max_attempts, 1)
        _check_time(self.scheduled_for)
        if self.reuse is not None and not isinstance(self.reuse, bool):
            raise RequestInvalid("reuse must be true or false, or be left to the definition")
        if self.id is not None:
            object.__setattr__(self, "id", parse_id(self.id))

    @classmethod
    def of(cls, item: "Request | Mapping[str, Any]", nth: int) -> "Request":
        """The request that an item of `enqueue_many` stands for."""
        if isinstance(item, Request):
            return item if item.body is not None else replace(item, item=nth)
        if not isinstance(item, Mapping):
            raise RequestInvalid(
                f"an item to enqueue is a Request or a dict, not a {type(item).__name__}"
            )
        known = [each.name for each in fields(cls) if each.name not in _OURS]
        if unknown := sorted(str(name) for name in item if name not in known):
            raise RequestInvalid(f'a request has no "{unknown[0]}"; it has: {", ".join(known)}')
        for name in ("tenant", "definition_key"):
            if item.get(name) is None:
                raise RequestInvalid(f"a request needs a {name}")
        given = {name: value for name, value in item.items() if value is not None}
        if isinstance(given.get("scheduled_for"), str):
            given["scheduled_for"] = _time(given["scheduled_for"])
        return cls(**given, item=nth)


def all_refused(refused: Sequence[tuple[Request, PayloadInvalid]]) -> PayloadInvalid:
    """The one error for the payloads that do not fit; of many items, each fault names its own."""
    (request, first), *others = refused
    if request.item is None or not first.faults:
        return first
    faults = [
        Fault(f"/{request.item}/payload{fault.pointer}", fault.message)
        for request, error in refused
        for fault in error.faults
    ]
    keys = ", ".join(sorted({f'"{request.definition_key}"' for request, _ in refused}))
    which = f"{1 + len(others)} items" if others else f"item {request.item}"
    return PayloadInvalid(
        f"the payload of {which} ({keys}) does not fit: {listed(faults)}", bounded(faults)
    )


def an_object(what: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(payload, Mapping):
        raise PayloadInvalid(
            f"the payload of {what} is a {type(payload).__name__}; it must be an object"
        )
    return dict(payload)


def encoded(what: str, payload: Mapping[str, Any], limit: int) -> bytes:
    """A payload as it goes out, if it is not too large."""
    body = json.dumps(payload).encode()
    if len(body) > limit:
        raise PayloadTooLarge(
            f"the payload of {what} has {len(body)} bytes, the limit is {limit}; "
            "store the data elsewhere and pass a reference"
        )
    return body


def checked_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise RequestInvalid(f"{name} must be a string, not a {type(value).__name__}")
    try:
        json.check(value, name)
    except PayloadInvalid as error:
        raise RequestInvalid(str(error)) from None
    return value


def _check_number(name: str, value: object, least: int) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
        raise RequestInvalid(f"{name} must be a whole number from {least} to {2**31 - 1}")


def _check_time(value: object) -> None:
    match value:
        case None | timedelta():
            pass
        case datetime():
            if value.tzinfo is None:
                raise RequestInvalid(
                    f"scheduled_for is {value.isoformat()} without a time zone; say which, "
                    "for example datetime(..., tzinfo=UTC)"
                )
        case _:
            raise RequestInvalid(
                f"scheduled_for must be a datetime or a timedelta, not a {type(value).__name__}"
            )


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise RequestInvalid(
            f'scheduled_for is "{text[:40]}"; give a time like 2030-01-31T08:00:00+00:00'
        ) from None
