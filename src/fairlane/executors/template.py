"""Templates of a definition: `{payload.path_prefix}` in a text stands for one value of the job.

A template is data: it names values and does nothing else. `{{` and `}}` are plain braces. A value
that comes in is never read as a template again.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from fairlane.core import json
from fairlane.errors import FairlaneError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*\Z")
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

Encode = Callable[[str], str]
Name = tuple[str, ...]


class TemplateInvalid(FairlaneError):
    """A template does not read as one."""


class ValueMissing(FairlaneError):
    """A template names a value that the job does not have, or that is no single value."""

    def __init__(self, name: Name, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(f"{'.'.join(name)} {why}")


class Template:
    """A text with names in it, read once."""

    def __init__(self, text: str, roots: frozenset[str]) -> None:
        self.text = text
        self.parts = tuple(_parts(text, roots))  # plain texts, and names as tuples

    @property
    def names(self) -> list[Name]:
        return [part for part in self.parts if isinstance(part, tuple)]

    @property
    def before(self) -> str:
        """The plain text before the first name."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""

    def render(
        self,
        values: Mapping[str, Any],
        encode: Encode = str,
        *,
        secret: Callable[[str], str] | None = None,
    ) -> str:
        """The text with the values in their places, each through `encode`. `{secret.NAME}` is
        what `secret` answers for NAME."""
        found = []
        for part in self.parts:
            if isinstance(part, str):
                found.append(part)
            elif part[0] == "secret" and secret is not None:
                found.append(encode(secret(".".join(part[1:]))))
            else:
                found.append(encode(text_of(part, values)))
        return "".join(found)

    def __repr__(self) -> str:
        return f"Template({self.text!r})"


def value_of(name: Name, values: Mapping[str, Any]) -> Any:
    """The value behind a name; None where there is none."""
    value: Any = values
    for step in name:
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def text_of(name: Name, values: Mapping[str, Any]) -> str:
    """The value behind a name as text: a string as it is, a number or boolean as JSON writes it."""
    value: Any = values
    for step in name:
        if not isinstance(value, Mapping) or step not in value:
            raise ValueMissing(name, "is not there")
        value = value[step]
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            raise ValueMissing(name, f"is {_kind(value)}, not a single value")


def _parts(text: str, roots: frozenset[str]) -> list[str | Name]:
    parts: list[str | Name] = []

    def plain(piece: str) -> None:
        if parts and isinstance(parts[-1], str):
            parts[-1] += piece
        elif piece:
            parts.append(piece)

    end = 0
    for found in _PART.finditer(text):
        plain(text[end : found.start()])
        end = found.end()
        name = found[1]
        if found[0] in ("{{", "}}"):
            plain(found[0][0])
        elif name is None:
            raise TemplateInvalid(f'a lone "{found[0]}"; write "{found[0] * 2}" for a plain brace')
        elif not _NAME.match(name) or name.partition(".")[0] not in roots:
            known = ", ".join(sorted(roots))
            raise TemplateInvalid(f'"{{{name}}}" names no value; there are {known}')
        else:
            parts.append(tuple(name.split(".")))
    plain(text[end:])
    return parts


def _kind(value: Any) -> str:
    return "null" if value is None else "an array" if isinstance(value, list) else "an object"
