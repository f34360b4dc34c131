"""Definitions that are not this app's: what their payloads must be like.

A definition is asked for once and remembered. That it is still the same is checked by the very
statement that enqueues, so nothing here has to grow old by the clock.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from fairlane import schemas
from fairlane.client.adapters import Steps
from fairlane.client.request import Request, all_refused
from fairlane.client.wire import look
from fairlane.core import json
from fairlane.definitions.accept import accept
from fairlane.errors import DefinitionInvalid, Faulty, PayloadInvalid

Name = tuple[str, str | None]  # the key, and the version if one was named


class Kind(msgspec.Struct):
    """A definition as the database has it: the one that enqueue would take for a name."""

    key: str
    asked: str | None
    version: str
    id: UUID
    digest: str
    executor: str
    settings: dict[str, Any]
    arg_schema: dict[str, Any]

    def accept(self, request: Request) -> Request:
        """The request with its payload completed, and of this version."""
        try:
            payload = accept(
                self.key,
                self.arg_schema,
                request.payload,
                executor=self.executor,
                settings=self.settings,
            )
        except DefinitionInvalid as error:
            raise DefinitionInvalid(
                f'definition "{self.key}" version {self.version} can take no payload: {error}',
                error.faults,
            ) from None
        return dataclasses.replace(
            request,
            payload=payload,
            body=json.dumps(payload).encode(),
            version=self.version,
            inputs_hash=schemas.inputs_hash(self.key, self.version, payload),
        )

    @property
    def expectation(self) -> dict[str, Any]:
        return {"key": self.key, "version": self.asked, "id": self.id, "digest": self.digest}


_kind = msgspec.json.Decoder(Kind)


class Fitted(NamedTuple):
    """Requests that are validated, and by which definitions."""

    requests: list[Request]
    expected: list[dict[str, Any]]


class Kinds:
    def __init__(self) -> None:
        self._known: dict[Name, Kind] = {}

    def fit(self, requests: Sequence[Request]) -> Steps[Fitted]:
        """The requests, validated; asks for what is not known yet.

        What is not there, or not active, is left for the database to refuse.
        """
        names = {_name(request) for request in requests if not request.inputs_hash}
        missing = names - self._known.keys()
        yield from self._ask(missing)
        try:
            return self._fitted(requests, names)
        except Faulty:
            if missing == names:
                raise
        # What is remembered may be out of date, and nothing is refused by that alone.
        yield from self._ask(names)
        return self._fitted(requests, names)

    def forget(self, requests: Sequence[Request]) -> None:
        for request in requests:
            self._known.pop(_name(request), None)

    def _ask(self, names: set[Name]) -> Steps[None]:
        if names:
            rows = yield look(sorted(names, key=str))
            for name in names:
                self._known.pop(name, None)
            for found in map(_kind.decode, rows):
                self._known[found.key, found.asked] = found

    def _fitted(self, requests: Sequence[Request], names: set[Name]) -> Fitted:
        # Another thread may learn something new meanwhile.
        known = {name: kind for name in names if (kind := self._known.get(name)) is not None}
        fitted: list[Request] = []
        refused: list[tuple[Request, PayloadInvalid]] = []
        for request in requests:
            kind = None if request.inputs_hash else known.get(_name(request))
            try:
                fitted.append(request if kind is None else kind.accept(request))
            except PayloadInvalid as error:
                refused.append((request, error))
        if refused:
            raise all_refused(refused)
        return Fitted(fitted, [kind.expectation for kind in known.values()])


def _name(request: Request) -> Name:
    return request.definition_key, request.version
