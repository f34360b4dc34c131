"""Where a schema says that secrets stand. fairlane.schema_secrets does the same in SQL."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from fairlane.core.json import pointer_to

# A schema that takes more steps than this to look through hides every payload whole.
MOST_STEPS = 2_000
ALL = "/*"

HERE = ("if", "then", "else")
HERE_ALL = ("allOf", "anyOf", "oneOf")

# Patterns that mean the same in Python and in PostgreSQL and never take long; any other stands for
# every member there may be.
PLAIN_PATTERN = re.compile(r"\^?(?:[A-Za-z0-9_-]|\\\.|\([A-Za-z0-9_|-]+\))*\$?")


@dataclass(frozen=True)
class _Place:
    schema: Any
    path: str
    resource: Any  # what a local $ref points into
    refs: tuple[str, ...] = ()  # those that led here


def of_schema(schema: Any) -> list[str]:
    """The paths to what is `writeOnly` or a `password`, wherever the schema says it."""
    if not _any(schema, _is_secret):
        return []
    found: dict[str, None] = {}
    again: list[str] = []  # where the schema comes back to itself
    places = deque([_Place(schema, "", schema)])
    named: dict[str, Any] = {}
    leads: dict[int, bool] = {}  # by identity: many a $ref leads to the same
    steps = 0
    while places:
        place = places.popleft()
        steps += 1
        if steps > MOST_STEPS:
            return [ALL]
        if not isinstance(place.schema, dict):
            continue
        if _is_secret(place.schema):
            found[place.path] = None
            continue
        resource = place.schema if "$id" in place.schema else place.resource
        for ref in (place.schema.get("$ref"), place.schema.get("$dynamicRef")):
            if not isinstance(ref, str):
                continue
            if ref in place.refs:
                again.append(place.path)
            else:
                if ref == "#":
                    target = resource
                elif ref.startswith("#/"):
                    target = _pointed(ref, resource)
                else:
                    if ref not in named:
                        named[ref] = _named(ref, schema)
                    target = named[ref]
                places.append(_Place(target, place.path, resource, (*place.refs, ref)))
        for inside, path in _inside(place.schema, place.path):
            # As in SQL: only what is worth a look counts as a step.
            if id(inside) not in leads:
                leads[id(inside)] = _any(inside, _leads_on)
            if leads[id(inside)]:
                places.append(_Place(inside, path, resource, place.refs))
    # Below the place where it comes back, its secrets may stand at any depth.
    last = dict.fromkeys(path.rpartition("/")[2] for path in found)
    found |= dict.fromkeys(f"{path}/**/{step}" for path in again for step in last)
    return list(found)


def _is_secret(schema: dict[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _leads_on(schema: dict[str, Any]) -> bool:
    return _is_secret(schema) or "$ref" in schema or "$dynamicRef" in schema


def _any(value: Any, holds: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether something at any depth is so."""
    if isinstance(value, dict):
        return holds(value) or any(_any(each, holds) for each in value.values())
    return isinstance(value, list) and any(_any(each, holds) for each in value)


def _inside(schema: dict[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    """The schemas in a schema, and what each is about."""
    for keyword in HERE:
        yield schema.get(keyword), path
    for keyword in HERE_ALL:
        for each in _items(schema, keyword):
            yield each, path
    for each in _members(schema, "dependentSchemas").values():
        yield each, path

    named = _members(schema, "properties")
    for name, each in named.items():
        yield each, pointer_to(path, name)
    for pattern, each in _members(schema, "patternProperties").items():
        yield each, f"{path}/{_matching(pattern)}"
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if isinstance(schema.get(keyword), dict):
            others = "".join("~-" + pointer_to("", name)[1:] for name in sorted(named))
            yield schema[keyword], f"{path}/*{others}"

    first = _items(schema, "prefixItems")
    for at, each in enumerate(first):
        yield each, f"{path}/{at}"
    rest = "".join(f"~-{at}" for at in range(len(first)))
    for keyword in ("items", "unevaluatedItems"):
        yield schema.get(keyword), f"{path}/*{rest}"
    for each in _items(schema, "items"):  # as prefixItems was once called
        yield each, f"{path}/*"
    yield schema.get("contains"), f"{path}/*"


def _matching(pattern: str) -> str:
    """The step for the members that a pattern finds."""
    plain = re.sub(r"^\^?\.[*+]|\.[*+]\$?$", "", pattern)
    return f"~={plain}" if plain and PLAIN_PATTERN.fullmatch(plain) else "*"


def _pointed(ref: str, resource: Any) -> Any:
    """What "#/…" leads to; None if it leads nowhere."""
    found = resource
    for step in unquote(ref[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict):
            found = found.get(name)
        else:
            return None
    return found


def _named(ref: str, document: Any) -> Any:
    """The schema of this $id, or with this anchor; None if it is not in the document."""
    places = deque([document])
    while places:
        place = places.popleft()
        if isinstance(place, dict):
            anchors = {f"#{place.get(name)}" for name in ("$anchor", "$dynamicAnchor")}
            if place.get("$id") == ref or ref in anchors:
                return place
            places.extend(place.values())
        elif isinstance(place, list):
            places.extend(place)
    return None


def _items(schema: dict[str, Any], keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _members(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    found = schema.get(keyword)
    return found if isinstance(found, dict) else {}
