"""The executor of a definition and its settings, which stand under its name."""

from collections.abc import Mapping
from typing import Any

from fairlane.core.json import pointer_to
from fairlane.definitions.fields import kind, shown, whole
from fairlane.definitions.shape import EXECUTORS
from fairlane.errors import DefinitionInvalid, Fault


def executor_faults(said: Mapping[str, Any], values: dict[str, Any], pointer: str) -> list[Fault]:
    """Is it one, are its settings there and right, and no other's? Fills `values` in."""
    given = [name for name in EXECUTORS if name in said]
    # Who gives the settings of one executor has said which.
    executor = said.get("executor", given[0] if len(given) == 1 else "python")
    if executor not in EXECUTORS:
        return [Fault(f"{pointer}/executor", f"{kind(executor)} is none of {', '.join(EXECUTORS)}")]
    if "executor" in said or given:
        values["executor"] = executor
    faults = [
        Fault(f"{pointer}/{name}", f"the executor is {executor}, so {name} has no place here")
        for name in given
        if name != executor
    ]
    if executor not in said:
        if executor != "python":
            faults.append(
                Fault(f"{pointer}/{executor}", f"the executor is {executor}; say what it runs here")
            )
        return faults
    settings = said[executor]
    if not isinstance(settings, dict):
        found = Fault(f"{pointer}/{executor}", f"settings are an object, not {kind(settings)}")
        return [*faults, found]
    try:
        _read_settings(executor, settings, values.get("arg_schema", {}))
    except DefinitionInvalid as error:
        return faults + below(pointer, error)
    values["settings"] = settings
    return faults


def _read_settings(executor: str, settings: dict[str, Any], arg_schema: dict[str, Any]) -> None:
    match executor:
        case "command":
            from fairlane.executors.command.settings import CommandSettings

            CommandSettings.read(settings, arg_schema)
        case "http":
            from fairlane.executors.http.settings import HttpSettings

            HttpSettings.read(settings, arg_schema)
        case _:
            _read_python(settings)


def _read_python(settings: dict[str, Any]) -> None:
    """What `@app.job` says of its task. In a file it is for people: the code comes from --app."""
    faults: list[Fault] = []
    for name, value in settings.items():
        here = pointer_to("/python", name)
        match name:
            case "task":
                if not isinstance(value, str):
                    faults.append(Fault(here, f"a task is module:function, not {kind(value)}"))
            case "isolation":
                if value not in ("thread", "process"):
                    faults.append(Fault(here, f"give thread or process, not {kind(value)}"))
            case "memory_mb":
                try:
                    whole(1)(value)
                except ValueError as error:
                    faults.append(Fault(here, str(error)))
                if settings.get("isolation") != "process":
                    faults.append(Fault(here, "memory_mb needs isolation: process"))
            case _:
                faults.append(
                    Fault(here, f'python has no "{shown(name)}"; it has task, isolation, memory_mb')
                )
    if faults:
        raise DefinitionInvalid("the settings are refused", faults)


def below(pointer: str, error: DefinitionInvalid) -> list[Fault]:
    """The faults of a part, as seen from the whole."""
    found = [Fault(f"{pointer}{fault.pointer}", fault.message) for fault in error.faults]
    return found or [Fault(pointer, str(error))]
