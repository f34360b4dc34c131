"""Artifacts: what a job has made and put elsewhere, told in its result by kind, URL and expiry.

A result that is an object may have `artifacts`, a list of objects:

    {"artifacts": [{"kind": "report", "url": "s3://reports/7.pdf",
                    "expires_at": "2030-01-31T00:00:00Z"}]}
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from fairlane.core.json import pointer_to
from fairlane.errors import Fault

MOST = 1000
URL = 4096
TEXT = 255
BYTES = 2**63 - 1

# Where a browser or a cloud's own tools can fetch from. Nothing that runs (javascript:), and
# nothing that is another thing on another machine (file:).
SCHEMES = ("https", "http", "s3", "gs", "az", "abfs", "abfss", "r2", "oss", "cos", "sftp", "ftps")
_RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


def faults(result: Any) -> list[Fault]:
    """Everything that is wrong with a result's artifacts; a result without any has no faults."""
    if not isinstance(result, Mapping) or result.get("artifacts") is None:
        return []
    listed = result["artifacts"]
    if not isinstance(listed, list | tuple):
        return [Fault("/artifacts", "artifacts are a list of objects with kind and url")]
    if len(listed) > MOST:
        return [Fault("/artifacts", f"at most {MOST:,} artifacts, not {len(listed):,}")]
    return [
        fault
        for index, artifact in enumerate(listed)
        for fault in _faults(artifact, f"/artifacts/{index}")
    ]


def _faults(artifact: Any, pointer: str) -> list[Fault]:
    if not isinstance(artifact, Mapping):
        return [Fault(pointer, "an artifact is an object with kind and url")]
    missing = [
        Fault(f"{pointer}/{name}", f"an artifact needs a {name}")
        for name in ("kind", "url")
        if artifact.get(name) is None
    ]
    wrong = []
    for name, value in artifact.items():
        if name not in _CHECKS:
            known = ", ".join(_CHECKS)
            why: str | None = f"an artifact has no such field; it has {known}"
        else:
            why = None if value is None else _CHECKS[name](value)
        if why:
            wrong.append(Fault(pointer_to(pointer, name), why))
    return missing + wrong


def _text(value: Any) -> str | None:
    fits = isinstance(value, str) and 0 < len(value) <= TEXT and value.isprintable()
    return None if fits else f"give a text of 1 to {TEXT} printable characters"


def _url(value: Any) -> str | None:
    """Why it is no URL that a person may be sent to."""
    if not isinstance(value, str) or not 0 < len(value) <= URL:
        return f"give a URL of at most {URL:,} characters"
    # A browser would drop or turn these, and go elsewhere than what was looked at here.
    if not value.isprintable() or re.search(r"[\s\\]", value):
        return "a URL has no spaces, backslashes or control characters; encode them"
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        return f"it is no URL: {error}"
    if parts.scheme not in SCHEMES or not value[len(parts.scheme) :].startswith("://"):
        return f"give an absolute URL that starts with one of {', '.join(SCHEMES)}"
    if "@" in parts.netloc:
        # Not told back: it may be a password.
        return "a URL carries no user name or password; sign it instead"
    if not parts.hostname:
        return "the URL names no host or bucket"
    return None


def _expiry(value: Any) -> str | None:
    wanted = "give a time with its zone, like 2030-01-31T18:00:00Z"
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        return wanted
    try:
        datetime.fromisoformat(value.upper())
    except ValueError as error:
        return f"{wanted}: {error}"
    return None


def _bytes(value: Any) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return None if whole and 0 <= value <= BYTES else "give the size in whole bytes, 0 or more"


def _sha256(value: Any) -> str | None:
    fits = isinstance(value, str) and re.fullmatch(r"[0-9a-fA-F]{64}", value)
    return None if fits else "give 64 hexadecimal digits"


_CHECKS: Mapping[str, Callable[[Any], str | None]] = {
    "kind": _text,
    "url": _url,
    "expires_at": _expiry,
    "name": _text,
    "bytes": _bytes,
    "sha256": _sha256,
}
