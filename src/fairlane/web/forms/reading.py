"""What was typed into the inputs of a schema, as JSON again; what cannot be read is a fault."""

import json as stdlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

from fairlane.core.json import pointer_to
from fairlane.errors import Fault
from fairlane.web.forms.inputs import JSON, PLAIN
from fairlane.web.forms.schemas import Shape, shape_of

LEFT_OUT = object()


class Reader:
    """Reads a form once. An empty input leaves its member out: whether that may be is for the
    definition to say. A moment without a zone is one of the reader's."""

    def __init__(self, schema: Mapping[str, Any], typed: Mapping[str, str], zone: ZoneInfo) -> None:
        self._root = schema
        self._typed = typed
        self._zone = zone
        self.faults: list[Fault] = []

    def payload(self) -> dict[str, Any]:
        return self._members("", self._root, deep=True)

    def _members(self, pointer: str, schema: Mapping[str, Any], *, deep: bool) -> dict[str, Any]:
        properties = schema.get("properties")
        needed = schema.get("required") or ()
        found: dict[str, Any] = {}
        for name, each in (properties if isinstance(properties, Mapping) else {}).items():
            shape = shape_of(each, self._root)
            here = pointer_to(pointer, name)
            value = self._value(here, shape, deep=deep)
            if value is LEFT_OUT and shape.kind == "object" and deep and name in needed:
                value = {}  # what is missing inside it is told there
            if value is not LEFT_OUT:
                found[name] = value
        rest = self._json(f"{pointer}/*", self._typed.get(f"{JSON}{pointer}/*", ""))
        if isinstance(rest, dict):
            return {**rest, **found}
        if rest is not LEFT_OUT and rest is not None:
            self.faults.append(Fault(f"{pointer}/*", "give an object"))
        return found

    def _value(self, pointer: str, shape: Shape, *, deep: bool) -> Any:
        if (text := self._typed.get(f"{JSON}{pointer}")) is not None:
            return self._json(pointer, text)
        if shape.kind == "object" and deep:
            inside = self._members(pointer, shape.schema, deep=False)
            return inside or LEFT_OUT
        text = self._typed.get(f"{PLAIN}{pointer}", "")
        if shape.kind in ("text", "long"):
            return text or LEFT_OUT
        if not text.strip():
            return LEFT_OUT
        return self._read(pointer, shape, text)

    def _read(self, pointer: str, shape: Shape, text: str) -> Any:
        kind = shape.kind
        if kind in ("integer", "number", "boolean"):
            return self._scalar(pointer, kind, text)
        if kind == "list":
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            return [
                self._scalar(pointer_to(pointer, number), shape.item or "string", line)
                for number, line in enumerate(lines)
            ]
        if kind == "choice":
            return self._json(pointer, text)
        return self._moment(text.strip()) if kind == "moment" else text

    def _scalar(self, pointer: str, kind: str, text: str) -> Any:
        text = text.strip()
        if kind == "string":
            return text
        try:
            value = stdlib.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            value = None
        fits = {
            "boolean": isinstance(value, bool),
            "integer": isinstance(value, int) and not isinstance(value, bool),
            "number": isinstance(value, int | float) and not isinstance(value, bool),
        }
        if fits[kind]:
            return value
        wanted = {"boolean": "true or false", "integer": "a whole number", "number": "a number"}
        self.faults.append(Fault(pointer, f"give {wanted[kind]}"))
        return LEFT_OUT

    def _json(self, pointer: str, text: str) -> Any:
        if not text.strip():
            return LEFT_OUT
        value, fault = json_of(text)
        if fault is not None:
            self.faults.append(Fault(pointer, fault))
            return LEFT_OUT
        return value

    def _moment(self, text: str) -> str:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return text  # the definition says what it wants
        return text if moment.tzinfo else moment.replace(tzinfo=self._zone).isoformat()


def json_of(text: str) -> tuple[Any, str | None]:
    """A value, or what is wrong with the text and where."""
    try:
        return stdlib.loads(text, parse_constant=_no_constant, object_pairs_hook=_once), None
    except stdlib.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return None, f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]} ({place})"
    except RecursionError:
        return None, "this is not JSON: it is nested too deep"
    except ValueError as error:
        return None, f"this is not JSON: {error}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no value of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f'"{twice[:60]}" stands there twice; say it once')
    return found
