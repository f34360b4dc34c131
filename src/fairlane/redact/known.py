"""Secrets whose value is known: found in a text as they are, or as they are commonly encoded."""

import json
import re
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from html import escape
from urllib.parse import quote, quote_plus

from fairlane.redact.marker import MARKER

# A shorter value is found everywhere by chance: hiding "1" or "prod" would leave holes all over
# the logs, and the holes would tell what it is.
SHORTEST = 6
TELLING = 4  # characters of a beginning: fewer give nothing away


class Known:
    """Values to hide. Any thread may add to them while others hide."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._counts: Counter[str] = Counter()
        self._forms: tuple[str, ...] = ()
        self._in_base64: tuple[str, ...] = ()
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
        self._in_base64 = tuple(form for value in self._counts for form in in_base64(value))

    def hide(self, text: str) -> str:
        spans = [span for form in self._forms if form in text for span in _spans(form, text)]
        spans += _wrapped(self._in_base64, text) if self._in_base64 and "\n" in text else ()
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

    def begun(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a value, whose rest has
        not been written yet."""
        longest = 0
        for form in self._forms:
            end = text[-(len(form) - 1) :]
            at = end.find(form[:TELLING])
            while at >= 0 and not form.startswith(end[at:]):
                at = end.find(form[:TELLING], at + 1)
            longest = max(longest, len(end) - at if at >= 0 else 0)
        return longest


# What this process knows: the secrets it has looked up by reference. Its log lines go by it.
KNOWN = Known()


@lru_cache(maxsize=1024)
def forms(value: str) -> tuple[str, ...]:
    """The texts that give a value away."""
    value = value.strip()
    found = dict.fromkeys((*_escaped(value), *_in_urls(value), *_as_bytes(value)))
    found |= dict.fromkeys(in_base64(value))
    # A key of many lines is often printed line by line.
    found |= dict.fromkeys(line.strip() for line in value.splitlines())
    return tuple(form for form in found if _gives_away(form))


def _gives_away(form: str) -> bool:
    return len(form) >= SHORTEST and form not in MARKER


def _raw(value: str) -> bytes:
    """Its bytes, also where they are no UTF-8: the environment gives such as lone surrogates."""
    try:
        return value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return value.encode(errors="surrogatepass")


def _escaped(value: str) -> Iterator[str]:
    """As JSON, Python, shells and XML write it; JSON and Python also inside of one another."""
    yield value
    once = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    for text in sorted(once):
        yield text
        yield text.replace("/", "\\/")
        yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield repr(text)[1:-1]
    yield value.replace("'", "'\\''")
    yield value.replace("'", "'\"'\"'")
    yield escape(value, quote=False)
    yield escape(value)


def _in_urls(value: str) -> Iterator[str]:
    raw = _raw(value)
    for text in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield text
        yield _ESCAPE.sub(lambda found: found[0].lower(), text)
        yield quote(text, safe="")


_ESCAPE = re.compile("%[0-9A-F]{2}")


def _as_bytes(value: str) -> Iterator[str]:
    raw = _raw(value)
    if len(raw) >= SHORTEST:
        yield raw.hex()
        yield raw.hex().upper()
    yield raw.decode(errors="replace")  # as the output of a command shows bytes that are no UTF-8
    yield value.encode(errors="backslashreplace").decode()


@lru_cache(maxsize=1024)
def in_base64(value: str) -> tuple[str, ...]:
    """Three bytes make four characters, so what base64 shows of a value goes by how many bytes
    stand before it. The characters at either end depend on the neighbours and are left out."""
    raw = _raw(value.strip())
    if len(raw) < SHORTEST:
        return ()
    found: list[str] = []
    for before in range(3):
        text = b64encode(bytes(before) + raw).decode()
        start = (0, 2, 3)[before]
        end = (before + len(raw)) * 8 // 6
        found += (text[start:end], text[start:end].replace("+", "-").replace("/", "_"))
    return tuple(form for form in dict.fromkeys(found) if _gives_away(form))


def _wrapped(forms: Iterable[str], text: str) -> Iterator[tuple[int, int]]:
    """Where these stand though broken into lines, as mail and `base64` do it."""
    flat = _BREAK.sub("", text)
    if len(flat) == len(text):
        return
    there = [span for form in forms if form in flat for span in _spans(form, flat)]
    if there:
        # Each character that is left, by its place in the text.
        gone = {at for found in _BREAK.finditer(text) for at in range(*found.span())}
        places = [at for at in range(len(text)) if at not in gone]
        yield from ((places[start], places[end - 1] + 1) for start, end in there)


_BREAK = re.compile(r"(?<=[A-Za-z0-9+/_-])\r?\n(?=[A-Za-z0-9+/=_-])")


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
