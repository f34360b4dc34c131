"""JSON as PostgreSQL's jsonb takes it: what it would refuse, or change, is refused here first."""

import math
from decimal import Decimal
from typing import Any

import msgspec

from fairlane.errors import Fault, PayloadInvalid

DEPTH = 100

# Python reads and writes no whole number of more than 4,300 digits.
DIGITS = 1000
_BITS = 3322


def plain(value: Any) -> Any:
    """The string or number behind a subclass of one, which msgspec refuses to write."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind.__str__(value) if kind is str else kind(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=plain)
_decoder = msgspec.json.Decoder()


def dumps(value: Any) -> str:
    """JSON text of a value of our own making."""
    return _encoder.encode(value).decode()


def loads(text: str | bytes) -> Any:
    """A ValueError says that it cannot be read, also when it is nested too deep for that."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("JSON is nested too deep") from None


# What is told of a place: a key may be as long as a payload.
LONGEST = 200


class _Bad(Exception):
    """Something that cannot be held; each level adds its step as the error passes."""

    def __init__(self, has: str, why: str = "") -> None:
        self.has = has
        self.why = why
        self.steps: list[str | int] = []


def check(value: Any, what: str) -> None:
    """Refuse what JSON or jsonb cannot hold, saying where it stands."""
    try:
        _check(value, 0)
    except _Bad as bad:
        pointer = ""
        for step in reversed(bad.steps):
            pointer = pointer_to(pointer, step if isinstance(step, int) else step[:LONGEST])
        pointer = shortened(pointer.replace("\x00", "\\0"))
        told = f"{what} {bad.has} at {pointer or '/'}{bad.why}"
        fault = Fault(pointer, f"{bad.has}{bad.why}")
        raise PayloadInvalid(told, [fault]) from None


def pointer_to(pointer: str, key: str | int) -> str:
    """The JSON pointer to a member of what `pointer` points to."""
    if isinstance(key, int):
        return f"{pointer}/{key}"
    escaped = str(key).replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{escaped.encode(errors='backslashreplace').decode()}"


def shortened(text: str, longest: int = LONGEST) -> str:
    """As much of a text of somebody else's as is worth telling."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _check(value: Any, depth: int) -> None:
    # Where it stands is put together only once something is wrong: doing so for every item of a
    # long list under a long key would take minutes.
    if depth > DEPTH:
        raise _Bad(f"is nested more than {DEPTH} deep")
    match value:
        case None | bool():
            pass
        case str():
            _check_text(value)
        case int():
            if value.bit_length() > _BITS:
                raise _Bad(f"has a number of more than {DIGITS} digits")
        case float():
            if not math.isfinite(value):
                raise _Bad(f"has {value}", "; JSON has no such number")
        case Decimal():
            if not value.is_finite():
                raise _Bad(f"has {value}", "; JSON has no such number")
            if abs(value.adjusted()) > DIGITS or len(value.as_tuple().digits) > DIGITS:
                raise _Bad(f"has a number of more than {DIGITS} digits")
        case dict():
            _check_members(value, depth)
        case list() | tuple():
            _check_items(value, depth)
        case _:
            raise _Bad(
                f"has a {type(value).__name__}",
                "; JSON has objects, arrays, strings, numbers, true, false and null",
            )


def _check_members(value: dict[Any, Any], depth: int) -> None:
    for key, item in value.items():
        if not isinstance(key, str):
            raise _Bad(f"has the key {key!r}", "; a JSON key is a string")
        try:
            _check_text(key)
            _check(item, depth + 1)
        except _Bad as bad:
            bad.steps.append(key)
            raise


def _check_items(value: list[Any] | tuple[Any, ...], depth: int) -> None:
    for index, item in enumerate(value):
        try:
            _check(item, depth + 1)
        except _Bad as bad:
            bad.steps.append(index)
            raise


def _check_text(value: str) -> None:
    if "\x00" in value:
        raise _Bad("has a NUL character", "; PostgreSQL cannot store it")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _Bad("has half a character (a lone surrogate)") from None
