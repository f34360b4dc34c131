"""One text for one value, however it was written: what `inputs_hash` is made of.

In the spirit of RFC 8785, with two differences. Keys are sorted by code point, which is how Python,
PostgreSQL's "C" collation and UTF-8 itself sort; RFC 8785 sorts by UTF-16 unit, which differs only
above U+FFFF. And a whole number is written with all its digits, whatever its size: jsonb keeps
them all, and RFC 8785 would round them.
"""

import hashlib
from decimal import Decimal
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(order="deterministic")


def canonical(value: Any) -> bytes:
    """The canonical JSON of a value that `core.json.check` lets pass.

    A number is what its decimal text says: jsonb keeps that, and gives 1e23 back as a whole number
    of 24 digits. So 1, 1.0 and 1e0 are one number, and -0.0 is 0.
    """
    return _encoder.encode(_plain(value))


def inputs_hash(key: str, version: str, payload: Any) -> str:
    """What tells equal work: hex SHA-256 over the canonical `[key, version, payload]`."""
    return hashlib.sha256(canonical([key, version, payload])).hexdigest()


_PLAIN = frozenset((str, int, bool, type(None)))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        if _PLAIN.issuperset(map(type, value.values())):
            return value
        return {name: _plain(each) for name, each in value.items()}
    if kind is list or kind is tuple:
        return [_plain(each) for each in value]
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < 1e15 else _number(value)
    if kind is Decimal:
        # As it comes back: with a point or without one.
        return int(value) if value.as_tuple().exponent >= 0 else _plain(float(value))
    return value


def _number(value: float) -> Any:
    text = Decimal(repr(value))
    if text == text.to_integral_value():
        return int(text)
    # As ECMAScript writes it, and so RFC 8785: digits down to a millionth, then an exponent.
    if abs(text) >= Decimal("1e-6"):
        return msgspec.Raw(format(text, "f").encode())
    sign, digits, exponent = text.as_tuple()
    assert isinstance(exponent, int)
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    mantissa = f"{first}.{rest}" if rest else first
    return msgspec.Raw(f"{'-' if sign else ''}{mantissa}e{exponent + len(rest)}".encode())
