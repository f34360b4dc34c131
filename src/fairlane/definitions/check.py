"""Checks definitions as they are written: every fault at once, each with its pointer."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.core.json import pointer_to
from fairlane.definitions.definition import Definition
from fairlane.definitions.executor import below, executor_faults
from fairlane.definitions.fields import FIELDS, kind, shown, storable
from fairlane.definitions.shape import KEPT, WRITTEN, to_row
from fairlane.errors import DefinitionInvalid, Fault

# Names that other systems use for ours.
ALSO_CALLED = {
    "name": "key",
    "active": "is_active",
    "enabled": "is_active",
    "schema": "arg_schema",
    "payload_schema": "arg_schema",
    "output_schema": "result_schema",
    "retries": "max_attempts",
    "concurrency": "max_running",
    "rate_limit": "starts_per_minute",
}


@dataclass(frozen=True)
class Written:
    """A definition that was found right, and which of its fields were said at all."""

    definition: Definition
    said: frozenset[str]

    @property
    def row(self) -> dict[str, Any]:
        return to_row(self.definition, self.said)


def check(written: Any, *, queues: Collection[str]) -> Written:
    """One definition, as an API body has it."""
    found, faults = read(written, queues=queues)
    if found is None:
        raise refusal("the definition is refused", faults)
    return found


def check_all(entries: Sequence[Any], *, queues: Collection[str], what: str) -> list[Written]:
    """The entries of a file, all or none."""
    found: list[Written] = []
    faults: list[Fault] = []
    first: dict[tuple[str, str], int] = {}
    for index, entry in enumerate(entries):
        here = f"/definitions/{index}"
        one, its_faults = read(entry, queues=queues, pointer=here)
        faults += its_faults
        if one is None:
            continue
        found.append(one)
        name = (one.definition.key, one.definition.version)
        if first.setdefault(name, index) != index:
            faults.append(
                Fault(f"{here}/key", f"{one.definition} is also /definitions/{first[name]}")
            )
    if faults:
        raise refusal(f"{what} is refused", faults)
    return found


def refusal(what: str, faults: Sequence[Fault]) -> DefinitionInvalid:
    told = "; ".join(map(str, faults[:5]))
    more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
    return DefinitionInvalid(f"{what}, nothing was changed: {told}{more}", faults)


def read(
    written: Any, *, queues: Collection[str], pointer: str = ""
) -> tuple[Written | None, list[Fault]]:
    """A definition and no fault, or None and every fault."""
    if not isinstance(written, Mapping):
        return None, [Fault(pointer, f"a definition is an object, not {kind(written)}")]
    faults = [
        fault for name in written for fault in _name_faults(str(name), pointer_to(pointer, name))
    ]
    # What is null is not said.
    said = {name: value for name, value in written.items() if value is not None and name in WRITTEN}
    if not said.get("key"):
        faults.append(Fault(f"{pointer}/key", "a definition needs a key"))
        said.pop("key", None)
    values: dict[str, Any] = {}
    for name, value in said.items():
        here = f"{pointer}/{name}"
        if unstorable := storable(value, here):
            faults += unstorable
        elif name in FIELDS:
            values[name], its_faults = FIELDS[name](value, here)
            faults += its_faults
    # What is wrong in itself is not looked at together with the rest.
    bad = {fault.pointer.removeprefix(pointer).split("/")[1] for fault in faults}
    sound = {name: value for name, value in said.items() if name not in bad}
    faults += _queue(sound, values, queues, pointer)
    faults += _schemas(sound, values, pointer)
    faults += [
        fault
        for fault in executor_faults(sound, values, pointer)
        if fault.pointer.removeprefix(pointer).split("/")[1] not in bad
    ]
    if faults:
        return None, faults
    return Written(Definition(**values), frozenset(values)), []


def _name_faults(name: str, pointer: str) -> list[Fault]:
    if name in WRITTEN:
        return []
    if name in KEPT:
        return [Fault(pointer, "the database says this; leave it out")]
    if name == "settings":
        return [Fault(pointer, "an executor's settings stand under its name: command, http")]
    close = difflib.get_close_matches(name, WRITTEN, 1)
    meant = ALSO_CALLED.get(name) or (close[0] if close else None)
    hint = f'; did you mean "{meant}"?' if meant else f"; there are {', '.join(WRITTEN)}"
    return [Fault(pointer, f'a definition has no "{shown(name)}"{hint}')]


def _queue(
    said: Mapping[str, Any], values: dict[str, Any], queues: Collection[str], pointer: str
) -> list[Fault]:
    if "queue" not in said:
        return []
    queue = said["queue"]
    if isinstance(queue, str) and queue in queues:
        values["queue"] = queue
        return []
    return [
        Fault(
            f"{pointer}/queue",
            f"{kind(queue)} is no queue; there are {', '.join(sorted(queues))}, or add one with: "
            "fairlane queues create",
        )
    ]


def _schemas(said: Mapping[str, Any], values: dict[str, Any], pointer: str) -> list[Fault]:
    from fairlane.schemas import compile as compile_schema

    faults: list[Fault] = []
    for name in ("arg_schema", "result_schema"):
        if name not in said:
            continue
        here, schema = f"{pointer}/{name}", said[name]
        if not isinstance(schema, dict):
            faults.append(Fault(here, f"a schema is a JSON Schema object, not {kind(schema)}"))
            continue
        try:
            compile_schema(schema, payload=name == "arg_schema")
        except DefinitionInvalid as error:
            faults += below(here, error)
            continue
        values[name] = schema
    return faults
