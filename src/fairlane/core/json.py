"""JSON as PostgreSQL's jsonb takes it: what it would refuse, or change, is refused here first."""

import math
from decimal import Decimal
from typing import Any

import msgspec

from fairlane.errors import PayloadInvalid

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
    return _decoder.decode(text)


def check(value: Any, what: str) -> None:
    """Refuse what JSON or jsonb cannot hold, saying where it stands."""
    _check(value, what, "", 0)


def pointer_to(pointer: str, key: str | int) -> str:
    """The JSON pointer to a member of what `pointer` points to."""
    escaped = str(key).replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{escaped.encode(errors='backslashreplace').decode()}"


def _check(value: Any, what: str, pointer: str, depth: int) -> None:
    if depth > DEPTH:
        raise PayloadInvalid(f"{what} is nested more than {DEPTH} deep at {pointer[:80]}")
    match value:
        case None | bool():
            pass
        case str():
            _check_text(value, what, pointer)
        case int():
            if value.bit_length() > _BITS:
                raise _invalid(what, f"a number of more than {DIGITS} digits", pointer)
        case float():
            if not math.isfinite(value):
                raise _invalid(what, str(value), pointer, "; JSON has no such number")
        case Decimal():
            if not value.is_finite():
                raise _invalid(what, str(value), pointer, "; JSON has no such number")
            if abs(value.adjusted()) > DIGITS or len(value.as_tuple().digits) > DIGITS:
                raise _invalid(what, f"a number of more than {DIGITS} digits", pointer)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise _invalid(what, f"the key {key!r}", pointer, "; a JSON key is a string")
                inside = pointer_to(pointer, key)
                _check_text(key, what, inside)
                _check(item, what, inside, depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                _check(item, what, f"{pointer}/{index}", depth + 1)
        case _:
            raise _invalid(
                what,
                f"a {type(value).__name__}",
                pointer,
                "; JSON has objects, arrays, strings, numbers, true, false and null",
            )


def _check_text(value: str, what: str, pointer: str) -> None:
    if "\x00" in value:
        raise _invalid(what, "a NUL character", pointer, "; PostgreSQL cannot store it")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _invalid(what, "half a character (a lone surrogate)", pointer) from None


def _invalid(what: str, has: str, pointer: str, why: str = "") -> PayloadInvalid:
    shown = pointer.replace("\x00", "\\0") or "/"
    return PayloadInvalid(f"{what} has {has} at {shown}{why}")
