"""Definitions in a file: YAML, TOML or JSON, read as data and nothing else."""

import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, NoReturn

from fairlane.definitions import yaml
from fairlane.definitions.fields import kind, shown
from fairlane.errors import DefinitionInvalid, Fault

SIZE = 1024 * 1024
FORMATS = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json"}


@dataclass(frozen=True)
class File:
    """What a file says, not yet checked; `lines` knows where, as far as the format tells."""

    name: str
    definitions: list[Any]
    others: list[str] = field(default_factory=list)
    lines: Mapping[str, int] = field(default_factory=dict)

    def place(self, pointer: str) -> str:
        """The file's name, with the line of what the pointer leads to or would lead to."""
        while pointer and pointer not in self.lines:
            pointer = pointer.rpartition("/")[0]
        line = self.lines.get(pointer)
        return self.name if line is None else f"{self.name}, line {line}"


def format_of(path: str) -> str | None:
    """The format that a file's name promises."""
    return FORMATS.get(PurePath(path).suffix.lower())


def load(path: str, form: str) -> File:
    """Read a file, `-` being stdin. OSError is the caller's to tell."""
    name, data = contents(path)
    return parse(data, form, name)


def contents(path: str) -> tuple[str, bytes]:
    """A file's name and bytes, one more than it may have at most."""
    if path == "-":
        return "stdin", sys.stdin.buffer.read(SIZE + 1)
    with Path(path).open("rb") as opened:
        return path, opened.read(SIZE + 1)


def parse(data: bytes, form: str, name: str = "the file") -> File:
    return _file(name, *document(data, form, name))


def document(data: bytes, form: str, name: str = "the file") -> tuple[Any, Mapping[str, int]]:
    """What a file holds, whatever it is about, and the line of each of its values if it tells."""
    if len(data) > SIZE:
        _refuse(name, f"it is over {SIZE // 1024 // 1024} MiB; split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(name, f"it is not UTF-8 at byte {error.start}")
    lines: Mapping[str, int] = {}
    try:
        match form:
            case "toml":
                value = tomllib.loads(text)
            case "json":
                value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
            case _:
                value, lines = yaml.read(text)
    except DefinitionInvalid as error:
        raise _refusal(name, error.faults) from None
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        _refuse(name, "it is nested too deep" if deep else f"it is no {form.upper()}: {error}")
    return value, lines


def _file(name: str, value: Any, lines: Mapping[str, int]) -> File:
    if not isinstance(value, dict) or not isinstance(value.get("definitions"), list):
        held = value.get("definitions") if isinstance(value, dict) else value
        _refuse(
            name,
            f'it needs a list under "definitions", and has {kind(held) if held else "none"}',
            "/definitions",
        )
    # Triggers may stand in the same file; they have a command of their own.
    others = [each for each in value if each != "definitions"]
    faults = [
        Fault(f"/{each}", f'a file has no "{shown(each)}"; it has "definitions" and "triggers"')
        for each in others
        if each != "triggers"
    ]
    if faults:
        raise _refusal(name, faults)
    return File(name, value["definitions"], others, lines)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'the name "{shown(twice)}" stands twice in one object')
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _refuse(name: str, why: str, pointer: str = "") -> NoReturn:
    raise _refusal(name, [Fault(pointer, why)])


def _refusal(name: str, faults: list[Fault]) -> DefinitionInvalid:
    from fairlane.definitions.check import refusal

    return refusal(f"{name} is refused", faults)
