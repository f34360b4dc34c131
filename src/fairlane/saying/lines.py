"""What a task logs by `logging` or `structlog` stands in its job's log as well.

Whose line it is goes by the context: a coroutine, a plain task's thread and `asyncio.to_thread`
have their job's; a thread that a task starts by itself has none, unless it is given a copy.
"""

import logging
import sys
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, Protocol

from fairlane.running import RUNNING
from fairlane.saying.records import event_of, line_of

_LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))
_BY_METHOD = {"exception": "error", "critical": "error", "fatal": "error", "err": "error"}
_BY_METHOD |= {"warn": "warning", "msg": "info", "notset": "debug"}


class Speaker(Protocol):
    def hear(self, level: str, message: str, fields: dict[str, Any]) -> None: ...


# What is told of a line may log itself, as a __str__ does: nobody listens to that.
_TELLING: ContextVar[bool] = ContextVar("fairlane.telling", default=False)
_alone: Speaker | None = None


def listen() -> None:
    """From now on, for the whole process; twice is once."""
    root = logging.getLogger()
    if not any(isinstance(handler, ToJob) for handler in root.handlers):
        root.addHandler(ToJob())
    _listen_to_structlog()


def speak_alone(speaker: Speaker) -> None:
    """This process is one job's: every thread of it speaks for that job."""
    global _alone
    _alone = speaker
    listen()


def _tell(level: str, message: str, fields: dict[str, Any]) -> None:
    if (speaker := RUNNING.get() or _alone) is not None:
        speaker.hear(level, message, fields)


class ToJob(logging.Handler):
    """Hands each line to the job that it is about. It writes nothing itself, so it never waits."""

    def createLock(self) -> None:  # noqa: N802
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        # Our own lines are about the worker, or are in the job's log already.
        ours = record.name == "fairlane" or record.name.startswith("fairlane.")
        if ours or _TELLING.get() or (RUNNING.get() or _alone) is None:
            return
        before = _TELLING.set(True)
        try:
            level = next((name for least, name in _LEVELS if record.levelno >= least), "debug")
            _tell(level, *line_of(record))
        except Exception as error:
            _tell("warning", f"a line of {record.name} cannot be kept: {type(error).__name__}", {})
        finally:
            _TELLING.reset(before)


def to_job(
    logger: Any, method_name: str, event_dict: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A processor of structlog: passes every event on as it is, and keeps it for the job."""
    if not _TELLING.get() and (RUNNING.get() or _alone) is not None:
        before = _TELLING.set(True)
        try:
            level = _BY_METHOD.get(method_name, method_name)
            known = level if level in ("debug", "info", "warning", "error") else "info"
            _tell(known, *event_of(event_dict))
        except Exception as error:
            _tell("warning", f"an event cannot be kept: {type(error).__name__}", {})
        finally:
            _TELLING.reset(before)
    return event_dict


def _listen_to_structlog() -> None:
    """Where it prints by itself. Where it goes through `logging`, that is heard already."""
    structlog = sys.modules.get("structlog")
    if structlog is None:
        return
    config = structlog.get_config()
    if isinstance(config["logger_factory"], structlog.stdlib.LoggerFactory):
        return
    processors = config["processors"]
    if isinstance(processors, list) and to_job not in processors:
        # In place, before the one that makes text of it: loggers that are bound have this list.
        processors.insert(max(0, len(processors) - 1), to_job)
