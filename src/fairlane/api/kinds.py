"""Kinds of jobs, as the server keeps them in memory to validate payloads without asking again."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairlane import schemas
from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.core import json
from fairlane.definitions.definition import Definition
from fairlane.definitions.rows import find
from fairlane.errors import DefinitionInactive, PayloadInvalid
from fairlane.redact import Redactor
from fairlane.schemas.schema import unfit

MOST = 2000


@dataclass(frozen=True)
class Kind:
    """A definition, and what is made of it once."""

    definition: Definition
    asked_version: str | None

    @cached_property
    def redactor(self) -> Redactor:
        return Redactor.of(self.definition)

    def accept(self, payload: dict[str, Any], *, anyway: bool = False) -> dict[str, Any]:
        """The payload with its defaults; refused, no fault quotes what is secret. `anyway`: also of
        a definition that takes no new jobs."""
        definition = self.definition
        if not definition.is_active and not anyway:
            raise DefinitionInactive(
                f'definition "{definition.key}" version {definition.version} is not active'
            )
        json.check(payload, f'the payload of "{definition.key}"')
        try:
            return schemas.accept(definition.key, definition.arg_schema, payload)
        except PayloadInvalid as error:
            raise unfit(definition.key, self.redactor.faults(error.faults)) from None

    def inputs_hash(self, payload: dict[str, Any]) -> str:
        return schemas.inputs_hash(self.definition.key, self.definition.version, payload)


class Kinds:
    """Definitions by key and version. What is here may be old: the database says so when a job is
    enqueued by it, and nothing is enqueued then."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: OrderedDict[tuple[str, str | None], Kind] = OrderedDict()

    async def of(self, who: Principal, key: str, version: str | None) -> Kind:
        name = (key, version)
        if (kept := self._kept.get(name)) is not None:
            return kept
        async with self._database.acting(who) as connection:
            kind = Kind(await find(connection, key, version), version)
        self._kept[name] = kind
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return kind

    def forget(self, *kinds: Kind) -> None:
        for kind in kinds:
            self._kept.pop((kind.definition.key, kind.asked_version), None)
