"""Names of events, and the patterns by which triggers take them."""

import re
from functools import lru_cache

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_:-]*(?:\.[A-Za-z0-9_:-]+)*")
LONGEST = 200


def is_name(text: str) -> bool:
    return len(text) <= LONGEST and NAME.fullmatch(text) is not None


def is_pattern(text: str) -> bool:
    """An exact name, `provider.*` for all that begins with `provider.`, or `*` for all."""
    return text == "*" or is_name(text) or (text.endswith(".*") and is_name(text[:-2]))


@lru_cache(4096)
def patterns_of(name: str) -> tuple[str, ...]:
    """Every pattern that takes an event of this name: what to look triggers up by."""
    words = name.split(".")
    return (name, *(".".join([*words[:n], "*"]) for n in range(len(words) - 1, -1, -1)))
