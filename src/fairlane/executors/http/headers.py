"""The headers of a call: those of the definition, and those that every call has."""

import re
from collections.abc import Mapping
from typing import Any

from fairlane.executors.http.refusal import CallRefused
from fairlane.executors.template import Name, Template
from fairlane.executors.values import ROOTS_AND_SECRETS
from fairlane.secrets import Secrets

LONGEST = 8_000  # bytes of one value

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

# They say where a message ends and which way it goes: the connection's own to write.
_FRAMING = frozenset(
    (
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
# Every call has them, and a receiver relies on their being true.
_OURS = frozenset(
    (
        "idempotency-key",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
        "x-correlation-id",
    )
)


def fault_in_name(name: str) -> str | None:
    if not _TOKEN.match(name):
        return "not the name of a header"
    lower = name.lower()
    if lower in _FRAMING:
        return f"{name} is set by the connection itself"
    if lower in _OURS or lower.startswith("fairlane-"):
        return f"{name} is set by Fairlane on every call"
    return None


class HeaderTemplate:
    """The value of one header; `{secret.NAME}` may stand in it."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._template = Template(text, ROOTS_AND_SECRETS)
        if any(isinstance(part, str) and _CONTROL.search(part) for part in self._template.parts):
            raise CallRefused("a header has no line breaks or control characters")

    @property
    def names(self) -> list[Name]:
        return [name for name in self._template.names if name[0] != "secret"]

    @property
    def secrets(self) -> list[str]:
        return [".".join(name[1:]) for name in self._template.names if name[0] == "secret"]

    def render(self, values: Mapping[str, Any], secrets: Secrets) -> str:
        text = self._template.render(values, secret=secrets.lookup)
        # The value is never told: it may be, or hold, a secret.
        if _CONTROL.search(text):
            raise CallRefused(
                f"header {self.name}: its value has a line break or control character"
            )
        if len(text.encode()) > LONGEST:
            raise CallRefused(f"header {self.name}: its value has more than {LONGEST} bytes")
        return text
