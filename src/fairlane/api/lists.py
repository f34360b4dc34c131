"""Lists in filters: what is one in a query may be written the same way in a body."""

from typing import Any


def listed(given: Any) -> Any:
    """One word is a list of one, and commas part several, as in ?status=queued,running."""
    if not isinstance(given, str | list):
        return given
    words = [given] if isinstance(given, str) else given
    return [part for word in words for part in _parts(word)]


def _parts(word: Any) -> list[Any]:
    return [part.strip() for part in word.split(",")] if isinstance(word, str) else [word]
