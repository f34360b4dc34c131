"""Bodies with something added: every place of a body, and what each call says that it takes."""

import copy
from collections.abc import Iterator
from typing import Any

from api.calls import PREFIX, TRIGGER, Operation, document
from fairlane.definitions.fields import FIELDS as OF_DEFINITIONS
from fairlane.scheduler.check import FIELDS as OF_TRIGGERS

SCHEMAS = document()["components"]["schemas"]

NESTED = {"a": {"b": [{"c": 1}]}}
# Bodies with all that they can hold, where the plain one is short.
RICH: dict[str, dict[str, Any]] = {
    "POST /jobs": {"payload": NESTED},
    "POST /jobs/batch": {"jobs": [{"definition_key": "a.task", "payload": NESTED}]},
    "POST /jobs/{job_id}/cancel": {"reason": "x"},
    "POST /dead-letters/{job_id}/replay": {"payload": NESTED, "notes": "x"},
    "POST /dead-letters/{job_id}/resolve": {"notes": "x"},
    "POST /dead-letters/{job_id}/ignore": {"notes": "x"},
    "POST /events": {"data": NESTED},
    "POST /events/{event_id}/resend": {"failed": False},
    "POST /triggers": {"payload_template": NESTED},
    "POST /triggers/{trigger_id}/fire": {"data": NESTED},
    "POST /triggers/{trigger_id}/test": {**TRIGGER, "trigger_type": "event", "event_name": "e"},
    "PUT /admin/alerts/channels/{name}": {"settings": {}},
    "POST /admin/alerts/{alert_id}/acknowledge": {"note": "x"},
    "POST /worker/jobs/{job_id}/progress": {
        "progress": {"done": 1, "total": 2},
        "items": [{"name": "i", "state": "completed"}],
        "lines": [{"level": "info", "message": "m", "fields": NESTED}],
    },
    "POST /worker/jobs/{job_id}/complete": {"result": NESTED, "errors": [NESTED]},
}
# What is in these is the tenant's own JSON: any word may stand there, and means nothing to us.
FREE = {
    "error",
    "settings",
    "payload",
    "payload_template",
    "data",
    "progress",
    "fields",
    "result",
    "errors",
}


def named(operation: Operation) -> str:
    return f"{operation.method} {operation.path.removeprefix(PREFIX)}"


def has_body(operation: Operation) -> bool:
    return "requestBody" in operation.document


def body_of(operation: Operation) -> dict[str, Any]:
    body = copy.deepcopy({**(operation.body or {}), **RICH.get(named(operation), {})})
    if named(operation) == "POST /triggers/{trigger_id}/test":
        del body["cron_expr"]
    return body


def places(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every object in a body, by the way to it."""
    if isinstance(value, dict):
        yield way
        for name, inner in value.items():
            yield from places(inner, (*way, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*way, index))


def with_(body: dict[str, Any], way: tuple[str | int, ...], name: str, value: Any) -> Any:
    found = copy.deepcopy(body)
    place: Any = found
    for step in way:
        place = place[step]
    place[name] = value
    return found


def resolved(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all that it is made of, without what its members hold."""
    if ref := schema.get("$ref"):
        yield from resolved(SCHEMAS[ref.rsplit("/", 1)[1]])
        return
    yield schema
    for word in ("anyOf", "allOf", "oneOf"):
        for inner in schema.get(word, ()):
            yield from resolved(inner)
    if isinstance(items := schema.get("items"), dict):
        yield from resolved(items)


def fields(schema: dict[str, Any]) -> set[str]:
    return {name for each in resolved(schema) for name in each.get("properties", {})}


def taken(operation: Operation) -> set[str]:
    """The fields that a call takes."""
    content = operation.document["requestBody"]["content"]["application/json"]
    found = fields(content["schema"])
    if "/triggers" in operation.path and not operation.path.endswith("/fire"):
        found |= set(OF_TRIGGERS)
    if "/definitions" in operation.path:
        found |= set(OF_DEFINITIONS)
    return found


def answered_by(operation: Operation) -> set[str]:
    """Every field of what a call answers."""
    good = [each for code, each in operation.document["responses"].items() if code[0] == "2"]
    bodies = [each.get("content", {}).get("application/json", {}) for each in good]
    return {name for each in bodies for name in fields(each.get("schema", {}))}


def answered() -> set[str]:
    """Every field that any model of an answer has."""
    return {
        name
        for model, schema in SCHEMAS.items()
        if not model.endswith(("In", "Fields", "Changes", "Body"))
        for name in schema.get("properties", {})
    }
