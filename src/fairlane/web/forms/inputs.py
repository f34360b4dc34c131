"""The inputs of a form, out of a JSON Schema: what each is called, what it takes, what it holds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlane.core import json
from fairlane.core.json import pointer_to
from fairlane.web.forms.schemas import Shape, shape_of

# In front of the pointer: the names of inputs, and of those that hold JSON.
PLAIN, JSON = "p:", "j:"
MOST = 200  # inputs of one form; what has more is written as JSON


@dataclass(frozen=True)
class Input:
    """One member of the payload. `kind`: text, long, number, integer, boolean, choice, list, date,
    moment, json, or object, which has `inputs` of its own."""

    pointer: str
    label: str
    shape: Shape
    kind: str
    required: bool
    text: str = ""
    """What stands in it."""
    inputs: tuple["Input", ...] = ()
    faults: Sequence[str] = field(default=())

    @property
    def name(self) -> str:
        return f"{JSON if self.kind == 'json' else PLAIN}{self.pointer}"

    @property
    def id(self) -> str:
        """For labels; a pointer may hold anything, so that it is spelled out."""
        return "in" + "".join(each if each.isalnum() else f"_{ord(each):x}_" for each in self.name)

    @property
    def hint(self) -> str:
        return self.shape.hint

    @property
    def choices(self) -> list[tuple[str, str]]:
        """What is sent, and what is shown."""
        return [
            (json.dumps(each), each if isinstance(each, str) else json.dumps(each))
            for each in self.shape.enum
        ]


def inputs_of(
    schema: Mapping[str, Any],
    payload: Mapping[str, Any] | None = None,
    *,
    typed: Mapping[str, str] | None = None,
    faults: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Input, ...]:
    """The inputs for an object of this schema: holding a payload, or what was typed, or else the
    defaults. `faults` by pointer; one without an input of its own stands at the nearest above."""
    maker = _Maker(schema, typed, faults or {})
    return tuple(maker.members("", schema, payload, deep=True, fills=payload is None))


class _Maker:
    def __init__(
        self,
        root: Mapping[str, Any],
        typed: Mapping[str, str] | None,
        faults: Mapping[str, Sequence[str]],
    ) -> None:
        self._root = root
        self._typed = typed
        self._faults = faults

    def members(
        self, pointer: str, schema: Mapping[str, Any], value: Any, *, deep: bool, fills: bool
    ) -> Iterator[Input]:
        """`fills`: whether defaults stand in it. Not in an object that may be left out: one of its
        members would bring it, and ask for the others."""
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            properties = {}
        needed = schema.get("required")
        needed = list(dict.fromkeys(needed)) if isinstance(needed, list) else []
        held = value if isinstance(value, Mapping) else None
        # The database keeps the order of `required` and of no members: what is needed goes first.
        order = [name for name in needed if name in properties]
        order += [name for name in properties if name not in order]
        for name in order[:MOST]:
            each = properties[name]
            shape = shape_of(each, self._root)
            here = pointer_to(pointer, name)
            is_there = held is not None and name in held
            found = held[name] if held is not None and is_there else None
            filled = is_there or (fills and shape.has_default)
            content = found if is_there else shape.default
            required = name in needed
            yield self._input(here, name, shape, content, filled, required, deep, fills)
        extra = {k: v for k, v in (held or {}).items() if k not in properties}
        if extra or self._has_more(pointer) or (not properties and schema.get("type") == "object"):
            yield self._rest(pointer, extra, bool(properties))

    def _input(
        self,
        pointer: str,
        name: str,
        shape: Shape,
        value: Any,
        filled: bool,
        required: bool,
        deep: bool,
        fills: bool,
    ) -> Input:
        kind = shape.kind
        if kind == "object" and deep and (not filled or isinstance(value, Mapping)):
            held = value if filled else None
            inner = self.members(
                pointer, shape.schema, held, deep=False, fills=fills and required and not filled
            )
            own = self._faults.get(pointer, ())
            return Input(pointer, shape.title or name, shape, kind, required, "", tuple(inner), own)
        if kind == "text" and filled and isinstance(value, str) and "\n" in value:
            kind = "long"
        elif kind == "object" or (filled and not shape.holds(value)):
            kind = "json"
        if kind == "boolean" and not (required or filled):
            kind = "maybe"
        text = _text(kind, value) if filled else ""
        if self._typed is not None:
            if f"{JSON}{pointer}" in self._typed:
                kind, text = "json", self._typed[f"{JSON}{pointer}"]
            else:
                text = self._typed.get(f"{PLAIN}{pointer}", "")
        return Input(
            pointer, shape.title or name, shape, kind, required, text, (), self._at(pointer)
        )

    def _rest(self, pointer: str, extra: Mapping[str, Any], others: bool) -> Input:
        """Members that the schema does not name, together, as JSON."""
        shape = Shape({"type": "object"}, title="Other members" if others else "Payload")
        here = f"{pointer}/*"
        text = _text("json", dict(extra)) if extra else ""
        if self._typed is not None:
            text = self._typed.get(f"{JSON}{here}", "")
        own = list(self._faults.get(here, ()))
        return Input(here, shape.title, shape, "json", False, text, (), own)

    def _has_more(self, pointer: str) -> bool:
        return self._typed is not None and bool(self._typed.get(f"{JSON}{pointer}/*"))

    def _at(self, pointer: str) -> list[str]:
        """Its own faults, and those of what is inside it and has no input of its own."""
        found = list(self._faults.get(pointer, ()))
        inside = f"{pointer}/"
        for place, said in self._faults.items():
            if place.startswith(inside):
                found += [f"{place.removeprefix(pointer)}: {each}" for each in said]
        return found


def _text(kind: str, value: Any) -> str:
    match kind:
        case "list" if isinstance(value, list):
            return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in value)
        case "json":
            return pretty(value)
        case "choice" | "boolean" | "maybe" | "number" | "integer":
            return json.dumps(value)
        case _:
            return value if isinstance(value, str) else json.dumps(value)


def pretty(value: Any) -> str:
    import json as stdlib

    return stdlib.dumps(stdlib.loads(json.dumps(value)), indent=2, ensure_ascii=False)


def all_of(inputs: Sequence[Input]) -> Iterator[Input]:
    for each in inputs:
        yield each
        yield from all_of(each.inputs)
