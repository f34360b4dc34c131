"""Templates of a definition: `{payload.path_prefix}` in a text stands for one value of the job.

A template is data: it names values and does nothing else. `{{` and `}}` are plain braces.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from fairlane.core import json
from fairlane.errors import FairlaneError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*\Z")
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

Encode = Callable[[str], str]


class TemplateInvalid(FairlaneError):
    """A template does not read as one."""


class ValueMissing(FairlaneError):
    """A template names a value that the job does not have, or that is no single value."""


class Template:
    """A text with names in it, read once."""

    def __init__(self, text: str, roots: frozenset[str]) -> None:
        self.text = text
        self.parts = tuple(_parts(text, roots))  # plain texts, and names as tuples

    @property
    def names(self) -> list[tuple[str, ...]]:
        return [part for part in self.parts if isinstance(part, tuple)]

    def render(self, values: Mapping[str, Any], encode: Encode = str) -> str:
        """The text with the values in their places, each through `encode`."""
        return "".join(
            part if isinstance(part, str) else encode(text_of(part, values)) for part in self.parts
        )


def text_of(name: tuple[str, ...], values: Mapping[str, Any]) -> str:
    """The value behind a name as text: a string as it is, a number or boolean as JSON writes it."""
    value: Any = values
    for step in name:
        if not isinstance(value, Mapping) or step not in value:
            raise ValueMissing(f"{'.'.join(name)} is not there")
        value = value[step]
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            raise ValueMissing(f"{'.'.join(name)} is {_kind(value)}, not a single value")


def _parts(text: str, roots: frozenset[str]) -> list[str | tuple[str, ...]]:
    parts: list[str | tuple[str, ...]] = []
    end = 0
    for found in _PART.finditer(text):
        if found.start() > end:
            parts.append(text[end : found.start()])
        end = found.end()
        name = found[1]
        if found[0] in ("{{", "}}"):
            parts.append(found[0][0])
        elif name is None:
            raise TemplateInvalid(f'a lone "{found[0]}"; write "{found[0] * 2}" for a plain brace')
        elif not _NAME.match(name) or name.partition(".")[0] not in roots:
            known = ", ".join(sorted(roots))
            raise TemplateInvalid(f'"{{{name}}}" names no value; there are {known}')
        else:
            parts.append(tuple(name.split(".")))
    if end < len(text):
        parts.append(text[end:])
    return parts


def _kind(value: Any) -> str:
    return "null" if value is None else "an array" if isinstance(value, list) else "an object"
