"""Log lines of the long-running commands: for people, or JSON for what collects them.

Whatever a line says, and whoever says it: what looks like a secret, or is one that this process
knows, is taken out as the line is written.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fairlane.observe.about import OURS, names
from fairlane.redact import KNOWN, speaking

if TYPE_CHECKING:
    from fairlane.config import Settings
    from fairlane.redact import Redactor

# What the logging library keeps of every line, and what ours have besides.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {
    *("message", "asctime", "taskName"),
    "color_message",  # uvicorn says its lines a second time, for terminals
}

# JSON may hold them as they are; some who read lines end one there.
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


class ConsoleLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        try:
            text = super().format(record)
        except Exception:  # arguments that do not fit, an exception that cannot be shown
            text = f"{record.levelname} {record.name}: {_message(record)}{_more(record)}"
        return speaking().text(text)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the library's name
        return super().formatMessage(record) + _more(record)


def _more(record: logging.LogRecord) -> str:
    """What stands behind the text of a line, and before its traceback."""
    try:
        fields: dict[str, Any] = speaking().value(_fields(record))
        text = "".join(f" {name}={value!r}" for name, value in fields.items())
    except Exception:  # nested without end, or with a __repr__ that raises
        text = " (with fields that cannot be shown)"
    return text + "".join(f" {name}={value}" for name, value in _named(record).items())


class JsonLines(logging.Formatter):
    """One object a line, whatever the line says."""

    def format(self, record: logging.LogRecord) -> str:
        redactor = speaking()
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **_named(record),
        }
        if fields := _fields(record):
            line["fields"] = fields
        if record.exc_info:
            line["exception"] = _exception(self, record)
        if record.stack_info:
            line["stack"] = record.stack_info
        return _dumped(line, redactor)


def _dumped(line: dict[str, Any], redactor: "Redactor") -> str:
    from fairlane.core.json import dumps

    try:
        text = dumps(redactor.value(line))
    except Exception:
        # Otherwise logging would complain on stderr and quote the line as it was.
        at = line.pop("at")
        texts = {name: _text(value) for name, value in line.items()}
        if "fields" in line:
            texts["fields"] = {str(name): _text(value) for name, value in line["fields"].items()}
        text = dumps({"at": at, **redactor.value(texts)})
    return text if text.isascii() else text.translate(_LINE_ENDS)


def _named(record: logging.LogRecord) -> dict[str, Any]:
    return {**names(record), **getattr(record, "fairlane_request", {})}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """What came with the line: by ctx.log, or by `extra` of the logging library."""
    more = {
        name: value
        for name, value in vars(record).items()
        if name not in _USUAL and name not in OURS
    }
    own = getattr(record, "fields", None)
    return {**more, **own} if isinstance(own, dict) else more


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit the message, or that cannot be shown
        return f"{_text(record.msg)} (with arguments that do not fit)"


def _exception(lines: logging.Formatter, record: logging.LogRecord) -> str:
    try:
        return lines.formatException(record.exc_info)  # type: ignore[arg-type]
    except Exception:  # its own __str__ raises
        return "an exception that cannot be shown"


def _text(value: Any) -> Any:
    """Something as text that any reader takes."""
    if value is None or isinstance(value, bool | int):
        return value
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # nested without end, or with a __repr__ that raises
        return "cannot be shown"
    return text.encode("utf-8", "backslashreplace").decode()


def log_to_stderr(settings: "Settings") -> None:
    # The database's password is known by its place in a URL: it may well be "fairlane", and then no
    # line could be read any more.
    if settings.secret_key:
        KNOWN.add([settings.secret_key])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else ConsoleLines())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
