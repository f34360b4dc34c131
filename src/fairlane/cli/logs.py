"""Log lines of the long-running commands: for people, or JSON for what collects them."""

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.config import Settings


# What a line about a job carries besides its text.
ABOUT = ("tenant", "job_id", "attempt", "correlation_id", "fields")


class ConsoleLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        fields: dict[str, Any] = getattr(record, "fields", None) or {}
        text += "".join(f" {name}={value!r}" for name, value in fields.items())
        about = [str(value) for name in ABOUT[:2] if (value := getattr(record, name, None))]
        return f"{text} [{' '.join(about)}]" if about else text


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        from fairlane.core.json import dumps

        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name in ABOUT if (value := getattr(record, name, None))}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return dumps(line)


def log_to_stderr(settings: "Settings") -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else ConsoleLines())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
