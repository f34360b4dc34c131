"""A request held to its task before it is sent. One of a kind that this application does not have
is held to its definition on the way to the database."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fairlane.client.request import Request, all_refused, an_object, encoded
from fairlane.core import json
from fairlane.errors import PayloadInvalid
from fairlane.schemas import inputs_hash
from fairlane.task import Task, version_order

Tasks = Mapping[tuple[str, str], Task[..., Any]]  # by key and version


def checked_all(
    items: Iterable[Request | Mapping[str, Any]], tasks: Tasks, limit: int
) -> list[Request]:
    """All of them, or one error for all that do not fit."""
    found: list[Request] = []
    refused: list[tuple[Request, PayloadInvalid]] = []
    for nth, item in enumerate(items):
        request = Request.of(item, nth)
        try:
            found.append(checked(request, tasks, limit))
        except PayloadInvalid as error:
            refused.append((request, error))
    if refused:
        raise all_refused(refused)
    return found


def checked(request: Request, tasks: Tasks, limit: int) -> Request:
    """The request with its payload as it goes out, validated by its task if that is one of ours."""
    if request.body is not None:
        return request
    what = f'"{request.definition_key}"'
    payload = an_object(what, request.payload)
    if task := _task(tasks, request.definition_key, request.version):
        payload = task.signature.payload(payload)
        return replace(
            request,
            payload=payload,
            version=task.version,
            body=encoded(what, payload, limit),
            inputs_hash=inputs_hash(task.key, task.version, payload),
        )
    json.check(payload, f"the payload of {what}")
    body = encoded(what, payload, limit)
    return replace(request, payload=json.loads(body), body=body)


def _task(tasks: Tasks, key: str, version: str | None) -> Task[..., Any] | None:
    """Ours of this key; the newest if no version is named."""
    if version is not None:
        return tasks.get((key, version))
    ours = [task for task in tasks.values() if task.key == key]
    return max(ours, key=lambda task: version_order(task.version), default=None)
