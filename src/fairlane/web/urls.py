"""Links. `u("job", "acme", job_id, tab="logs")` is the only way to make one."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

_HOLE = re.compile(r"\{(\w+)(?::\w+)?\}")


class Urls:
    """The paths of all pages by name, below a root that the request tells."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def path(self, root: str, name: str, *parts: Any, **query: Any) -> str:
        """`parts` fill the holes of the path in their order; a list in the query is joined by
        commas, and what is None or empty is left out."""
        left = iter(parts)
        path = _HOLE.sub(lambda _: quote(str(next(left)), safe=""), self._paths[name])
        asked = {
            key.rstrip("_"): _text(value)
            for key, value in query.items()
            if value is not None and value != "" and value != [] and value != ()
        }
        return f"{root}{path}" + (f"?{urlencode(asked, safe=',:')}" if asked else "")


def _text(value: Any) -> str:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(str(each) for each in value)
    return str(value)


def safe_next(root: str, given: str | None) -> str | None:
    """Where to go on, if that is a path of ours: nobody is sent to another site from here."""
    if not given or len(given) > 2000 or not given.startswith(f"{root}/"):
        return None
    # Browsers read a backslash as a slash, and leave out tabs and line breaks.
    if given.startswith("//") or "\\" in given or any(ord(each) < 32 for each in given):
        return None
    parts = urlsplit(given)
    return given if not parts.scheme and not parts.netloc else None
