"""What a change has to tell on the next page: a sentence and, where it can be taken back, how."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST = 300
MOST = 2_500  # characters of a cookie, before they are encoded

# Actions that take another one back. A cookie names one of these and fills the holes of its path:
# it cannot lead anywhere else.
UNDOES = frozenset(
    {
        *("queue_pause", "queue_resume", "tenant_pause", "tenant_resume"),
        *("definition_pause", "definition_resume", "trigger_switch"),
        *("dead_letter_settle", "dead_letter_assign", "job_priority"),
    }
)


@dataclass(frozen=True)
class Undo:
    """The action that takes it back, by its name in web/pages.py."""

    name: str
    parts: tuple[str, ...]
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    text: str
    undo: Undo | None = None

    @property
    def cookie(self) -> str:
        said: dict[str, Any] = {"said": self.text[:LONGEST]}
        if self.undo is not None:
            said["undo"] = [self.undo.name, list(self.undo.parts), dict(self.undo.fields)]
        if len(json.dumps(said)) > MOST:  # a browser drops a cookie that is too long, words and all
            said.pop("undo", None)
        return base64.urlsafe_b64encode(json.dumps(said).encode()).decode()

    @classmethod
    def of(cls, cookie: str) -> "Told | None":
        """What the cookie says; nothing where it is not one of ours."""
        try:
            said = json.loads(base64.urlsafe_b64decode(cookie))
            return cls(str(said["said"])[:LONGEST], _undo(said.get("undo")))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


def _undo(said: Any) -> Undo | None:
    if said is None:
        return None
    name, parts, fields = said
    if name not in UNDOES:
        return None
    kept = {str(key): str(value) for key, value in fields.items()}
    return Undo(name, tuple(str(part) for part in parts), kept)
