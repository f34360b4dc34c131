"""A line that somebody logged, as message and fields."""

import logging
import re
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from fairlane.core import json
from fairlane.executors.cuts import beginning, ending
from fairlane.observe.about import OURS

EXCEPTION = 8_192  # characters of a traceback

_STANDARD = {*vars(logging.LogRecord("", 0, "", 0, "", (), None)), "message", "asctime", "taskName"}
_STANDARD |= OURS | {"_logger", "_name", "_from_structlog", "_record"}  # of structlog
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# The line has these itself.
_TOLD = ("event", "level", "timestamp", "logger", "exc_info", "stack_info")


def line_of(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """The message, and what came with it: the logger, `extra`, the exception."""
    message, fields = _said(record)
    fields = {"logger": record.name} | fields
    fields |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
    if record.exc_info:
        fields["exception"] = _exception(record.exc_info)
    return message, {name: _plain(value) for name, value in fields.items()}


def event_of(event: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """An event of structlog."""
    fields = {str(name): value for name, value in event.items() if name not in _TOLD}
    if exc_info := event.get("exc_info"):
        fields["exception"] = _exception(exc_info)
    return str(event.get("event", "")), {name: _plain(value) for name, value in fields.items()}


def _said(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    if isinstance(record.msg, Mapping):  # structlog, on its way to its formatter
        return event_of(record.msg)
    message = _COLOURS.sub("", record.getMessage())
    if message.startswith('{"') and '"event"' in message:  # structlog, as JSON
        try:
            found = json.loads(message)
            if isinstance(found, dict) and isinstance(found.get("event"), str):
                return event_of(found)
        except ValueError:
            pass
    return message, {}


def _exception(exc_info: Any) -> str:
    error = exc_info
    if exc_info is True:
        error = sys.exc_info()[1]
    elif isinstance(exc_info, tuple):
        error = exc_info[1]
    if not isinstance(error, BaseException):
        return ""
    return ending("".join(traceback.format_exception(error)), EXCEPTION)


def _plain(value: Any) -> Any:
    """What is no JSON is told as text."""
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return value
    try:
        return beginning(str(value), EXCEPTION)
    except Exception:  # its own __str__ raises
        return f"a {type(value).__name__}"
