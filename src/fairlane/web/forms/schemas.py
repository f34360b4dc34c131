"""What a schema says of one value, as far as an input can show it. The rest is the validator's: an
input that takes too much is refused by it, with a word at the field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlane.core.json import dumps

SCALARS = {"string": str, "integer": int, "number": float, "boolean": bool}
STEPS = 20  # of one reference to the next


@dataclass(frozen=True)
class Shape:
    """A schema without its references and without the null that only says "or nothing"."""

    schema: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    nullable: bool = False

    @property
    def type(self) -> str:
        said = self.schema.get("type")
        return said if isinstance(said, str) else ""

    @property
    def enum(self) -> Sequence[Any]:
        if "const" in self.schema:
            return [self.schema["const"]]
        found = self.schema.get("enum")
        return found if isinstance(found, list) else []

    @property
    def kind(self) -> str:
        schema = self.schema
        if self.enum:
            return "choice"
        match self.type:
            case "string":
                kinds = {"date": "date", "date-time": "moment"}
                longest = schema.get("maxLength")
                is_long = isinstance(longest, int) and longest > 400
                return kinds.get(str(schema.get("format")), "long" if is_long else "text")
            case "integer" | "number" | "boolean" as plain:
                return plain
            case "array" if self.item is not None:
                return "list"
            case "object" if isinstance(schema.get("properties"), Mapping):
                return "object"
        return "json"

    @property
    def item(self) -> str | None:
        """The type of a list's items, where a line holds one."""
        items = self.schema.get("items")
        said = items.get("type") if isinstance(items, Mapping) else None
        return said if isinstance(said, str) and said in SCALARS else None

    @property
    def is_secret(self) -> bool:
        return self.schema.get("writeOnly") is True or self.schema.get("format") == "password"

    @property
    def has_default(self) -> bool:
        return "default" in self.schema

    @property
    def default(self) -> Any:
        return self.schema.get("default")

    def holds(self, value: Any) -> bool:
        """Whether the input of its kind can show this value and give it back as it is."""
        kind = self.kind
        if kind == "choice":
            return any(dumps(value) == dumps(each) for each in self.enum)
        if kind == "list":
            return isinstance(value, list) and all(_one_line(each, self.item) for each in value)
        if kind in ("text", "date", "moment"):
            return isinstance(value, str) and "\n" not in value
        if kind == "long":
            return isinstance(value, str)
        if kind == "json":
            return True
        return _is(value, kind) or isinstance(value, Mapping)

    @property
    def hint(self) -> str:
        """What is asked for, in words."""
        said = self.schema.get("description")
        words = [said.strip()[:300]] if isinstance(said, str) and said.strip() else []
        low, high = self.schema.get("minimum"), self.schema.get("maximum")
        if low is not None and high is not None:
            words.append(f"{low} to {high}")
        elif low is not None:
            words.append(f"at least {low}")
        elif high is not None:
            words.append(f"at most {high}")
        extra = {
            "list": "one a line",
            "moment": "like 2026-11-16T09:00Z",
            "json": "as JSON",
        }.get(self.kind)
        return " · ".join([*words, extra] if extra else words)


def shape_of(schema: Any, root: Mapping[str, Any]) -> Shape:
    """Follows references inside the document, and takes `X or null` for an X that may be left."""
    found = schema if isinstance(schema, Mapping) else {}
    nullable = False
    for _ in range(STEPS):
        if isinstance(found.get("$ref"), str):
            rest = {name: each for name, each in found.items() if name != "$ref"}
            found = {**_at(found["$ref"], root), **rest}
            continue
        options = found.get("anyOf") or found.get("oneOf")
        if isinstance(options, list):
            real = [each for each in options if not _is_null(each)]
            if len(real) == 1 and len(options) == 2 and isinstance(real[0], Mapping):
                rest = {k: each for k, each in found.items() if k not in ("anyOf", "oneOf")}
                found, nullable = {**real[0], **rest}, True
                continue
        every = found.get("allOf")
        if isinstance(every, list) and len(every) == 1 and isinstance(every[0], Mapping):
            rest = {name: each for name, each in found.items() if name != "allOf"}
            found = {**every[0], **rest}
            continue
        break
    types = found.get("type")
    if isinstance(types, list) and len(types) == 2 and "null" in types:
        (other,) = [each for each in types if each != "null"] or ["null"]
        found, nullable = {**found, "type": other}, True
    title = found.get("title")
    return Shape(found, title[:80] if isinstance(title, str) else "", nullable)


def _at(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema of the same document; anything else says nothing."""
    if not reference.startswith("#"):
        return {}
    here: Any = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, Mapping) or step not in here:
            return {}
        here = here[step]
    return here if isinstance(here, Mapping) else {}


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int)
    if kind == "number":
        return isinstance(value, int | float)
    return kind == "string" and isinstance(value, str)


def _one_line(value: Any, kind: str | None) -> bool:
    if isinstance(value, str):
        return kind == "string" and value == value.strip() != "" and "\n" not in value
    return kind is not None and _is(value, kind)
