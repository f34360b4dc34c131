"""The `command` settings of a definition, read with every fault at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from fairlane.errors import DefinitionInvalid, Fault
from fairlane.executors.command.argv import ArgumentsRefused, Argv
from fairlane.executors.command.codes import Codes
from fairlane.executors.command.environment import Environment
from fairlane.executors.command.limits import Limits
from fairlane.executors.template import Template


@dataclass(frozen=True, kw_only=True)
class CommandSettings:
    """How a definition's command is run."""

    argv: Argv
    environment: Environment
    cwd: Template | None = None  # None: a directory of its own, which goes with it
    stdin: str = "none"  # or "payload": the payload as JSON
    limits: Limits = field(default_factory=Limits)
    codes: Codes = field(default_factory=Codes)

    @classmethod
    def read(cls, settings: Any, arg_schema: Mapping[str, Any]) -> Self:
        from fairlane.executors.command.reader import Reader

        reader = Reader(settings, arg_schema)
        found = reader.read()
        if reader.faults:
            told = "; ".join(str(fault) for fault in reader.faults)
            raise DefinitionInvalid(f"the command is refused: {told}", reader.faults)
        return cls(**found)

    def faults(self, payload: Mapping[str, Any]) -> list[Fault]:
        """What keeps a payload from ever being run, for whoever can refuse it beforehand."""
        try:
            self.argv.build({**_ANYBODY, "payload": payload})
        except ArgumentsRefused as error:
            return error.faults
        return []


_ANYBODY = {
    "tenant": {"id": "0" * 36, "slug": "tenant"},
    "job": {"id": "0" * 36},
    "attempt": {"number": 1},
    "definition": "definition",
    "version": "1",
    "correlation_id": "c",
}
