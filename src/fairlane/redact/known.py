"""Secrets whose value is known: found in a text as they are, or as they are commonly encoded."""

import json
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from urllib.parse import quote, quote_plus

from fairlane.redact.marker import MARKER

# A shorter value is found everywhere by chance: hiding "1" or "prod" would leave holes all over
# the logs, and the holes would tell what it is.
SHORTEST = 6


class Known:
    """Values to hide. Any thread may add to them while others hide."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._counts: Counter[str] = Counter()
        self._forms: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self.add(values)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def add(self, values: Iterable[str]) -> None:
        """Hide these from now on."""
        with self._lock:
            self._counts.update(values)
            self._settle()

    @contextmanager
    def during(self, values: Iterable[str]) -> Iterator[None]:
        """Hide these for as long as the block runs: the secrets of a job while it runs."""
        values = list(values)
        self.add(values)
        try:
            yield
        finally:
            with self._lock:
                self._counts.subtract(values)
                self._counts = +self._counts
                self._settle()

    def _settle(self) -> None:
        self._forms = tuple(dict.fromkeys(form for value in self._counts for form in forms(value)))

    def hide(self, text: str) -> str:
        spans = [span for form in self._forms if form in text for span in _spans(form, text)]
        if not spans:
            return text
        # Values may overlap: what is left of one must not be shown because another was found first.
        parts: list[str] = []
        shown = 0
        for start, end in sorted(spans):
            if end <= shown:
                continue
            if start > shown or not parts:
                parts += (text[shown:start], MARKER)
            shown = end
        return "".join((*parts, text[shown:]))


# What this process knows: the secrets it has looked up by reference. Its log lines go by it.
KNOWN = Known()


@lru_cache(maxsize=1024)
def forms(value: str) -> tuple[str, ...]:
    """The texts that give a value away."""
    value = value.strip()
    found = dict.fromkeys(
        (
            value,
            json.dumps(value)[1:-1],
            repr(value)[1:-1],
            quote(value, safe=""),
            quote_plus(value),
        )
    )
    found |= dict.fromkeys(_in_base64(value))
    # A key of many lines is often printed line by line.
    found |= dict.fromkeys(line.strip() for line in value.splitlines())
    return tuple(form for form in found if len(form) >= SHORTEST and form not in MARKER)


def _in_base64(value: str) -> Iterator[str]:
    """Three bytes make four characters, so what base64 shows of a value goes by how many bytes
    stand before it. The characters at either end depend on the neighbours and are left out."""
    raw = value.encode(errors="replace")
    if len(raw) < 2 * SHORTEST:
        return
    for before in range(3):
        text = b64encode(bytes(before) + raw).decode()
        start = (0, 2, 3)[before]
        end = (before + len(raw)) * 8 // 6
        yield text[start:end]
        yield text[start:end].replace("+", "-").replace("/", "_")


def _spans(form: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(form)
    while start >= 0:
        end = start + len(form)
        following = text.find(form, start + 1)
        while start < following < end:
            end = following + len(form)
            following = text.find(form, following + 1)
        yield start, end
        start = following
