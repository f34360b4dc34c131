"""Triggers in a file: a list under `triggers`, each with its `tenant`, applied all or none.

A trigger of a file is known by its tenant and label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.definitions.differences import Difference, differences
from fairlane.errors import Fault, TriggerInvalid
from fairlane.scheduler import store
from fairlane.scheduler.check import against, refusal, whole
from fairlane.scheduler.trigger import Trigger

LOCK = Call("select pg_advisory_xact_lock(hashtextextended('fairlane.triggers', 0))")
TENANTS = "select slug from fairlane.tenant where slug = any ($1::text[])"


@dataclass(frozen=True)
class Written:
    tenant: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Change:
    """What becomes of one trigger."""

    kind: Literal["created", "changed", "same"]
    trigger: Trigger
    differences: list[Difference] = field(default_factory=list)
    warnings: ClassVar[Sequence[str]] = ()  # of a trigger there is nothing to warn

    @property
    def name(self) -> str:
        return self.trigger.name

    def as_dict(self) -> dict[str, Any]:
        found = [each._asdict() for each in self.differences]
        return {**self.trigger.shape(), "change": self.kind, "differences": found}


async def read(connection: Connection, value: Any, name: str) -> list[Written]:
    """The triggers of a document; refused with every fault of it."""
    entries = value.get("triggers") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise refusal(
            f"{name} is refused", [Fault("/triggers", 'it needs a list under "triggers"')]
        )
    assert isinstance(value, dict)
    faults = [
        Fault(f"/{each}", 'a file has "definitions" and "triggers"')
        for each in value
        if each not in ("definitions", "triggers")
    ]
    found = [_entry(entry, f"/triggers/{n}", faults) for n, entry in enumerate(entries)]
    _refuse_twins(found, faults)
    if not faults:
        faults += await _unknown(connection, found)
    if faults:
        raise refusal(f"{name} is refused", faults)
    return found


async def apply(
    connection: Connection, written: Sequence[Written], *, actor: str | None = None, keep: bool
) -> list[Change]:
    """Bring the triggers to what is written, in one transaction; without `keep` it is undone, and
    tells what would change."""
    transaction = connection.transaction()
    await transaction.start()
    done = False
    try:
        if actor is not None:
            await send(connection, Call("select set_config('fairlane.actor', $1, true)", (actor,)))
        await send(connection, LOCK)
        changes = [await _put(connection, each) for each in written]
        done = keep
    finally:
        await (transaction.commit() if done else transaction.rollback())
    return changes


async def _put(connection: Connection, written: Written) -> Change:
    label = written.fields["label"]
    there = await store.labelled(connection, written.tenant, label)
    if len(there) > 1:
        raise TriggerInvalid(
            f'tenant "{written.tenant}" has {len(there)} triggers "{label}", and a file knows them '
            "by their label; rename one with: fairlane triggers set ID --label LABEL"
        )
    if not there:
        return Change("created", await store.add(connection, written.tenant, written.fields))
    [old] = there
    new = await store.put(connection, old, written.fields, written.tenant)
    found = list(differences(store.written(old), store.written(new)))
    return Change("changed" if found else "same", new, found)


def _entry(entry: Any, pointer: str, faults: list[Fault]) -> Written:
    tenant = entry.get("tenant") if isinstance(entry, Mapping) else None
    if isinstance(entry, Mapping):
        if not isinstance(tenant, str) or not tenant:
            faults.append(Fault(f"{pointer}/tenant", "a trigger of a file names its tenant"))
        entry = {name: value for name, value in entry.items() if name != "tenant"}
    fields, its_faults = whole(entry, pointer)
    faults += its_faults
    return Written(str(tenant), fields)


def _refuse_twins(found: Sequence[Written], faults: list[Fault]) -> None:
    first: dict[tuple[str, str], int] = {}
    for number, each in enumerate(found):
        name = (each.tenant, str(each.fields.get("label")))
        if first.setdefault(name, number) != number and each.fields:
            faults.append(Fault(f"/triggers/{number}/label", f"is also /triggers/{first[name]}'s"))


async def _unknown(connection: Connection, found: Sequence[Written]) -> list[Fault]:
    slugs = [each.tenant for each in found]
    known = {row["slug"] for row in await send(connection, Call(TENANTS, (slugs,)))}
    names = [(each.fields["definition_key"], each.fields["version"]) for each in found]
    kinds = await store.definitions(connection, names)
    faults = []
    for number, (each, name) in enumerate(zip(found, names, strict=True)):
        here = f"/triggers/{number}"
        if each.tenant not in known:
            faults.append(Fault(f"{here}/tenant", f'there is no tenant "{each.tenant[:63]}"'))
        faults += against(each.fields, kinds.get(name), here)
    return faults
