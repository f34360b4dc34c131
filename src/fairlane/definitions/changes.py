"""What becomes of a definition: created, changed or the same, and what a person should know."""

from dataclasses import dataclass, field
from typing import Any, Literal

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.definitions.definition import Definition
from fairlane.definitions.differences import Difference, differences, takes_less
from fairlane.definitions.shape import to_shape, to_written

Kind = Literal["created", "changed", "same"]

COUNTED = 1000


@dataclass(frozen=True)
class Change:
    """What becomes of one definition."""

    kind: Kind
    definition: Definition  # as it is afterwards
    differences: list[Difference] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            **to_shape(self.definition),
            "change": self.kind,
            "differences": [each._asdict() for each in self.differences],
            "warnings": self.warnings,
        }

    @property
    def name(self) -> str:
        return f"{self.definition.key} {self.definition.version}"

    @property
    def said(self) -> tuple[Any, ...]:
        """What a person agreed to; ids and times are made anew each time."""
        name = (self.definition.key, self.definition.version)
        return (self.kind, *name, to_written(self.definition), self.differences)


async def change_of(connection: Connection, old: Definition | None, new: Definition) -> Change:
    if old is None:
        return Change("created", new)
    found = list(differences(to_written(old), to_written(new)))
    # What was set live may have been let go, with the same value underneath.
    if old.set_live != new.set_live:
        found.append(Difference("/set_live", list(old.set_live), list(new.set_live)))
    if not found:
        return Change("same" if old.revision == new.revision else "changed", new)
    return Change("changed", new, found, await _warnings(connection, old, new))


async def _warnings(connection: Connection, old: Definition, new: Definition) -> list[str]:
    warnings = []
    waiting = await _waiting(connection, new)
    if old.arg_schema != new.arg_schema and takes_less(old.arg_schema, new.arg_schema):
        warnings.append(
            "the payload schema may refuse what it took before, and callers of version "
            f"{new.version} are not told; a new version would tell them"
        )
        if waiting:
            warnings.append(
                f"{waiting} waiting: each runs with the payload that was accepted; a python task "
                "that can no longer read it leaves it to the dead letters"
            )
    if old.queue != new.queue and waiting:
        warnings.append(f'{waiting} waiting in queue "{old.queue}": the new queue is for new jobs')
    if old.is_active and not new.is_active:
        warnings.append("new jobs are refused from now on; what runs goes on")
        if waiting:
            warnings.append(f"{waiting} waiting until it is active again")
    return warnings


async def _waiting(connection: Connection, definition: Definition) -> str:
    """How many jobs of it wait, as the start of a sentence; empty where none does."""
    call = Call(
        "select count(*) from (select from fairlane.job where definition_id = $1"
        " and status <> 'running' limit $2) waiting",
        (definition.id, COUNTED + 1),
    )
    [row] = await send(connection, call)
    count: int = row[0]
    if count > COUNTED:
        return f"more than {COUNTED:,} jobs are"
    return {0: "", 1: "1 job is"}.get(count, f"{count} jobs are")
