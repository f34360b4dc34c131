"""Templates of payloads: `{{event.provider_id}}` stands for one value, and nothing is computed.

A text that is one placeholder and nothing else keeps the JSON type of its value. What is not there
is an error, never an empty text. A value that comes in is not read as a template again.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairlane.core import json
from fairlane.errors import FairlaneError, Fault, PayloadTooLarge

# What a template of each kind of trigger may look into; None: anything below.
ROOTS: dict[str, dict[str, tuple[str, ...] | None]] = {
    "event": {"event": None, "tenant": ("id", "slug", "name"), "trigger": ("id", "label")},
    "schedule": {
        "schedule": ("time", "local_time", "timezone"),
        "tenant": ("id", "slug", "name"),
        "trigger": ("id", "label"),
    },
}
_PLACE = re.compile(r"\{\{(.*?)\}\}", re.S)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[^.{}\s]+)*")

# What a payload may have at most, whatever an installation allows.
LARGEST = 16 * 1024 * 1024

Name = tuple[str, ...]


class FieldMissing(FairlaneError):
    """A template names what is not there, or what is no single value in the middle of a text."""

    def __init__(self, name: Name, why: str, pointer: str = "") -> None:
        self.name = ".".join(name)
        self.pointer = pointer
        super().__init__(f"{{{{{self.name}}}}} {why}")


class Text:
    """A text with placeholders, read once."""

    def __init__(self, text: str) -> None:
        self.parts: list[str | Name] = []
        end = 0
        for found in _PLACE.finditer(text):
            if text[end : found.start()]:
                self.parts.append(text[end : found.start()])
            self.parts.append(tuple(found[1].strip().split(".")))
            end = found.end()
        if text[end:]:
            self.parts.append(text[end:])
        self.lone = self.parts[0] if len(self.parts) == 1 else None

    @property
    def names(self) -> list[Name]:
        return [part for part in self.parts if isinstance(part, tuple)]

    def render(self, values: Mapping[str, Any], pointer: str) -> Any:
        if isinstance(self.lone, tuple):
            return look_up(self.lone, values, pointer)
        return "".join(
            part if isinstance(part, str) else _as_text(part, values, pointer)
            for part in self.parts
        )


class Template:
    """A JSON object with placeholders in its texts, read once and rendered often."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self._read = _read(document)
        self._names = [name for _, text in placeholders(document) for name in text.names]
        self.is_constant = not self._names
        self.looks_only_into_events = all(name[0] == "event" for name in self._names)
        # Most templates are flat, and their texts lone placeholders.
        self._constants = {key: each for key, each in document.items() if not _looks(each)}
        self._lone = [
            (key, text.lone)
            for key, text in self._read.items()
            if isinstance(text, Text) and isinstance(text.lone, tuple)
        ]
        known = {*self._constants, *(key for key, _ in self._lone)}
        self._others = [(key, each) for key, each in self._read.items() if key not in known]

    def render(self, values: Mapping[str, Any]) -> dict[str, Any]:
        found = self._constants.copy()
        for key, name in self._lone:
            value: Any = values
            try:
                for step in name:
                    value = value[step]
            except (KeyError, TypeError):
                value = look_up(name, values, json.pointer_to("", key))
            found[key] = value
        for key, each in self._others:
            found[key] = _render(each, values, json.pointer_to("", key))
        return found

    def refuse_bombs(self, values: Mapping[str, Any], size: int) -> None:
        """A small template that names a large value many times would fill the memory before
        anybody could measure its payload. `size` is how many characters the values have."""
        if len(self._names) * size <= LARGEST:
            return
        total = 0
        for name in self._names:
            with contextlib.suppress(FieldMissing):
                total += len(json.dumps(look_up(name, values)))
            if total > LARGEST:
                raise PayloadTooLarge(
                    f"the template makes a payload of more than {LARGEST} bytes of this; name the "
                    "large value once, or pass a reference"
                )


def _looks(value: Any) -> bool:
    return any(True for _ in placeholders(value))


def look_up(name: Sequence[str], values: Any, pointer: str = "") -> Any:
    """The value behind a path; digits find their place in a list."""
    value = values
    for step in name:
        if (type(value) is dict or isinstance(value, Mapping)) and step in value:
            value = value[step]
        elif (
            isinstance(value, list)
            and len(step) < 10
            and step.isdecimal()
            and int(step) < len(value)
        ):
            value = value[int(step)]
        else:
            raise FieldMissing(tuple(name), "is not there", pointer)
    return value


def placeholders(value: Any, pointer: str = "") -> Iterator[tuple[str, Text]]:
    """Every text that has placeholders, with its place."""
    match value:
        case Mapping():
            for key, each in value.items():
                yield from placeholders(each, json.pointer_to(pointer, key))
        case list() | tuple():
            for index, each in enumerate(value):
                yield from placeholders(each, f"{pointer}/{index}")
        case str() if "{{" in value:
            if (text := Text(value)).names:
                yield pointer, text
        case _:
            pass


def faults_of(document: Any, trigger_type: str, pointer: str) -> list[Fault]:
    """What is wrong with a template as such: names that lead nowhere, braces left open."""
    roots = ROOTS[trigger_type]
    faults = []
    for place, text in placeholders(document, pointer):
        for name in text.names:
            shown = ".".join(name)
            below = roots.get(name[0], ())
            if not _NAME.fullmatch(shown) or name[0] not in roots:
                known = ", ".join(f"{root}.…" for root in roots)
                faults.append(
                    Fault(place, f'"{{{{{shown[:60]}}}}}" names no value; there are {known}')
                )
            elif below is not None and (len(name) != 2 or name[1] not in below):
                known = ", ".join(f"{name[0]}.{each}" for each in below)
                faults.append(Fault(place, f'there is no "{shown[:60]}"; there are {known}'))
    faults += [
        Fault(place, 'a "{{" without its "}}"')
        for place, text in _texts(document, pointer)
        if "{{" in _PLACE.sub("", text)
    ]
    return faults


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    match value:
        case Mapping():
            for key, each in value.items():
                yield from _texts(each, json.pointer_to(pointer, key))
        case list() | tuple():
            for index, each in enumerate(value):
                yield from _texts(each, f"{pointer}/{index}")
        case str():
            yield pointer, value
        case _:
            pass


def _read(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _read(each) for key, each in value.items()}
        case list() | tuple():
            return [_read(each) for each in value]
        case str() if "{{" in value:
            text = Text(value)
            return text if text.names else value
        case _:
            return value


def _render(value: Any, values: Mapping[str, Any], pointer: str) -> Any:
    kind = type(value)
    if kind is Text:
        return value.render(values, pointer)
    if kind is dict:
        return {
            key: _render(each, values, json.pointer_to(pointer, key)) for key, each in value.items()
        }
    if kind is list:
        return [_render(each, values, f"{pointer}/{n}") for n, each in enumerate(value)]
    return value


def _as_text(name: Name, values: Mapping[str, Any], pointer: str) -> str:
    value = look_up(name, values, pointer)
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            what = "null" if value is None else "a list" if isinstance(value, list) else "an object"
            raise FieldMissing(name, f"is {what} and cannot stand inside a text", pointer)
