"""Ids: UUIDv7, made by whoever enqueues, and a short form that people can read out."""

import os
import re
import threading
import time
from uuid import UUID

from fairlane.errors import IdInvalid

# Crockford's base 32: no I, L, O or U. The last five serve as check symbols only.
SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U"
VALUES = {symbol: value for value, symbol in enumerate(SYMBOLS)} | {"I": 1, "L": 1, "O": 0}
LENGTH = 26

# The constructor of UUID takes more than this: spaces, underscores, the digits of other scripts.
HEX = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}", re.I)

_lock = threading.Lock()
_last = 0
# A call to the system for each id would cost more than the id.
_random = b""
_used = 0


def uuid7() -> UUID:
    """A new id. Those of one process sort in the order they were made."""
    global _last, _random, _used
    micros = time.time_ns() // 1000
    with _lock:
        # 48 bits of milliseconds and 12 of their fraction; two calls in one step take the next.
        stamp = max((micros // 1000 << 12) | (micros % 1000 * 4096 // 1000), _last + 1)
        _last = stamp
        if _used == len(_random):
            _random, _used = os.urandom(4096), 0
        drawn = _random[_used : _used + 8]
        _used += 8
    high = (stamp >> 12 << 16) | 0x7000 | (stamp & 0xFFF)
    low = (0b10 << 62) | (int.from_bytes(drawn) & 0x3FFF_FFFF_FFFF_FFFF)
    return UUID(int=(high << 64) | low)


def _renew() -> None:
    global _lock, _random, _used
    _lock = threading.Lock()
    _random, _used = b"", 0  # a child must not draw what its parent draws


# Another thread may have held the lock at the moment of the fork, and is not there to let go.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def short_id(job_id: UUID) -> str:
    """The id in Crockford's base 32 with its check symbol, 27 characters."""
    number = job_id.int
    digits = [SYMBOLS[(number >> shift) & 31] for shift in range(5 * (LENGTH - 1), -1, -5)]
    return "".join(digits) + SYMBOLS[number % 37]


def parse_id(text: str | UUID) -> UUID:
    """The id behind a UUID or a short id; a mistyped one is refused as such."""
    if isinstance(text, UUID):
        return text
    if not isinstance(text, str):
        raise IdInvalid(f"a {type(text).__name__} is not an id: give a UUID or a short id")
    if HEX.fullmatch(text.strip()):
        return UUID(text.strip())
    return _parse_short(text)


def _parse_short(text: str) -> UUID:
    symbols = text.replace("-", "").strip().upper() if text.isascii() else ""
    if len(symbols) != LENGTH + 1 or any(symbol not in VALUES for symbol in symbols):
        raise IdInvalid(f'"{text[:64]}" is not an id: give a UUID or a short id of 27 characters')
    number = 0
    for symbol in symbols[:-1]:
        if VALUES[symbol] > 31:
            raise IdInvalid(f'"{text}" is mistyped: "{symbol}" can only be the last character')
        number = number * 32 + VALUES[symbol]
    if number >> 128 or number % 37 != VALUES[symbols[-1]]:
        raise IdInvalid(f'"{text}" is mistyped: its check symbol does not fit')
    return UUID(int=number)
