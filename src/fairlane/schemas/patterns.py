"""Patterns that can be matched in bounded time, and how much of it they take."""

import re
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, RegexOptions

# The matcher never backtracks, but its time grows with the size of the compiled pattern: one of
# 1 MiB takes 17 seconds for a payload of the largest size, one of 64 KiB takes 0.9.
LARGEST = 64 * 1024
LONGEST = 1000
OPTIONS = RegexOptions(size_limit=LARGEST)

_STEPS = (4, 16, 64)  # KiB
_UNBOUNDED = re.compile(r"(?<!\\)(?:\\\\)*(\(\?<?[=!]|\\[1-9]|\\k<)")


@lru_cache(4096)
def size_of(pattern: str) -> int | None:
    """The compiled size in KiB, rounded up to the next step; None if it cannot be used."""
    if len(pattern) <= LONGEST:
        for step in _STEPS:
            options = RegexOptions(size_limit=step * 1024)
            try:
                Draft202012Validator({"pattern": pattern}, offline=True, pattern_options=options)
            except ValueError:
                continue
            return step
    return None


def fault_of(pattern: str) -> str | None:
    """Why it is refused, if it is."""
    if len(pattern) > LONGEST:
        return f"the pattern has {len(pattern)} characters, the limit is {LONGEST}"
    if size_of(pattern) is not None:
        return None
    if _UNBOUNDED.search(pattern):
        return "the pattern looks around or back, which can take for ever; write it without"
    if "{" in pattern or r"\p" in pattern.lower():
        return (
            "the pattern is wrong, or too large when its repetitions are written out; "
            "for a length use minLength and maxLength"
        )
    return "the pattern is not a regular expression"
