"""The fields of a definition, each with what it may hold. A reader raises ValueError in words."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from fairlane.core import json
from fairlane.errors import Fault, PayloadInvalid

Reader = Callable[[Any, str], tuple[Any, list[Fault]]]

INT4 = 2**31 - 1
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,198}")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,62}")
DESCRIPTION = 2000
DELAYS = 100
POINTERS = 100
POINTER = 500


def kind(value: Any) -> str:
    """What a value is, in the words of JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'the text "{shown(value)}"'
        case int() | float():
            return f"the number {shown(str(value))}"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def shown(text: str, most: int = 60) -> str:
    """A text that fits into a sentence."""
    return text if len(text) <= most else f"{text[:most]}…"


def storable(value: Any, pointer: str, depth: int = 0) -> list[Fault]:
    """Each part of a value that jsonb cannot hold."""
    if depth > json.DEPTH:
        return [Fault(pointer[:80], f"it is nested more than {json.DEPTH} deep")]
    match value:
        case dict():
            inside = [(json.pointer_to(pointer, name), name, item) for name, item in value.items()]
        case list() | tuple():
            inside = [(f"{pointer}/{index}", "", item) for index, item in enumerate(value)]
        case _:
            return _unstorable(value, pointer)
    return [
        fault
        for here, name, item in inside
        for fault in (_unstorable({name: None}, here) or storable(item, here, depth + 1))
    ]


def _unstorable(value: Any, pointer: str) -> list[Fault]:
    try:
        json.check(value, "it")
    except PayloadInvalid as error:
        return [Fault(pointer, re.sub(r" at /\S*?(?=;|$)", "", str(error)))]
    return []


def _one(read: Callable[[Any], Any]) -> Reader:
    """A field that is right or wrong as a whole."""

    def reader(value: Any, pointer: str) -> tuple[Any, list[Fault]]:
        try:
            return read(value), []
        except ValueError as error:
            return None, [Fault(pointer, str(error))]

    return reader


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is text, not {kind(value)}")
    return value


def _key(value: Any) -> str:
    if not KEY.fullmatch(_text(value, "a key")):
        raise ValueError(
            f"{kind(value)} is no key; give 1 to 199 of letters, digits and . _ : / -, starting "
            "with a letter or digit"
        )
    return str(value)


def _version(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f'a version is text, not {kind(value)}; put it in quotes: "{value}"')
    if not VERSION.fullmatch(_text(value, "a version")):
        raise ValueError(
            f"{kind(value)} is no version; give 1 to 63 of letters, digits and . _ + -, starting "
            "with a letter or digit"
        )
    return str(value)


def _description(value: Any) -> str:
    if len(_text(value, "a description")) > DESCRIPTION:
        raise ValueError(
            f"a description has at most {DESCRIPTION:,} characters, not {len(value):,}"
        )
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"give true or false, not {kind(value)}")
    return value


def whole(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= INT4:
            raise ValueError(f"give a whole number of {least} or more, not {kind(value)}")
        return value

    return read


def _delays(value: Any, pointer: str) -> tuple[Any, list[Fault]]:
    if not isinstance(value, list | tuple) or len(value) > DELAYS:
        return None, [
            Fault(pointer, f"give a list of at most {DELAYS} numbers of seconds, like [60, 300]")
        ]
    faults = []
    for index, delay in enumerate(value):
        try:
            whole(0)(delay)
        except ValueError as error:
            faults.append(Fault(f"{pointer}/{index}", str(error)))
    return tuple(value), faults


def _redact(value: Any, pointer: str) -> tuple[Any, list[Fault]]:
    if not isinstance(value, list | tuple) or len(value) > POINTERS:
        return None, [
            Fault(pointer, f'give a list of at most {POINTERS} JSON pointers, like ["/token"]')
        ]
    faults = [
        Fault(
            f"{pointer}/{index}",
            f'{kind(each)} is no JSON pointer; give one like "/token" or "/users/*/password"',
        )
        for index, each in enumerate(value)
        if not is_pointer(each)
    ]
    return tuple(value), faults


def is_pointer(value: Any) -> bool:
    """A JSON pointer to a part of the payload; a step may be `*`, for every one there is."""
    return (
        isinstance(value, str)
        and len(value) <= POINTER
        and value.startswith("/")
        and not re.search(r"~(?![01])|\x00", value)
    )


# Those that stand alone; executor, settings and schemas look at one another (see check.py).
FIELDS: Mapping[str, Reader] = {
    "key": _one(_key),
    "version": _one(_version),
    "description": _one(_description),
    "timeout_seconds": _one(whole(1)),
    "max_attempts": _one(whole(1)),
    "retry_delays": _delays,
    "max_running": _one(whole(0)),
    "max_running_per_tenant": _one(whole(0)),
    "starts_per_minute": _one(whole(1)),
    "reuse": _one(_flag),
    "single_flight": _one(_flag),
    "dead_letter": _one(_flag),
    "redact": _redact,
    "is_active": _one(_flag),
}
