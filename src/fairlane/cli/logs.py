"""Log lines of the long-running commands: for people, or JSON for what collects them.

Whatever a line says, and whoever says it: what looks like a secret, or is one that this process
knows, is taken out as the line is written.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fairlane.correlation import CURRENT
from fairlane.redact import KNOWN, speaking

if TYPE_CHECKING:
    from fairlane.config import Settings


# What a line about a job carries besides its text.
ABOUT = ("tenant", "job_id", "attempt", "correlation_id", "fields")


class ConsoleLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        redactor = speaking()
        text = super().format(record)
        try:
            fields: dict[str, Any] = redactor.value(getattr(record, "fields", None) or {})
            text += "".join(f" {name}={value!r}" for name, value in fields.items())
        except Exception:  # nested without end, or with a __repr__ that raises
            text += " (with fields that cannot be shown)"
        about = [str(value) for name in ABOUT[:2] if (value := getattr(record, name, None))]
        if (correlation := CURRENT.get()) is not None:
            about.append(correlation)
        return redactor.text(f"{text} [{' '.join(about)}]" if about else text)


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        from fairlane.core.json import dumps

        redactor = speaking()
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (correlation := CURRENT.get()) is not None:
            line["correlation_id"] = correlation
        line |= {name: value for name in ABOUT if (value := getattr(record, name, None))}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return dumps(redactor.value(line))
        except Exception:
            # Otherwise logging would complain on stderr and quote the line as it was.
            line["fields"] = _as_text(line.get("fields"))
            return dumps(redactor.value(line))


def _as_text(fields: Any) -> str:
    try:
        return repr(fields)
    except Exception:  # nested without end, or with a __repr__ that raises
        return "cannot be shown"


def log_to_stderr(settings: "Settings") -> None:
    # The database's password is known by its place in a URL: it may well be "fairlane", and then no
    # line could be read any more.
    if settings.secret_key:
        KNOWN.add([settings.secret_key])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else ConsoleLines())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
