"""What a task in a process of its own says: lines for the worker, each of bounded length."""

import contextlib
import logging
import os
import threading
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

from fairlane import config
from fairlane.core import json
from fairlane.errors import ConfigError
from fairlane.executors.base import MESSAGE
from fairlane.executors.cuts import MARGIN, beginning, ending
from fairlane.observe import trace, tracing
from fairlane.observe.about import Named, about
from fairlane.outcome import Failed, Outcome
from fairlane.redact import KNOWN
from fairlane.redact.mask import Mask
from fairlane.redact.redactor import secrets_in
from fairlane.saying.ledger import LONGEST_ERROR, State

LONGEST = 16_384  # characters of a message; the worker scrubs it again and keeps half as many
FIELDS = 65_536  # characters of what comes with it
OUTPUT = 65_536


def log_as_the_worker(order: dict[str, Any]) -> None:
    """This process is one job's alone: its secrets are known from here on, to every thread."""
    from fairlane.observe.logs import log_to_stderr

    KNOWN.add(secrets_in(order["payload"], Mask(order["secret_paths"])))
    try:
        settings = config.load()
    except ConfigError:  # changed since the worker began, and no affair of this job
        settings = config.Settings()
    log_to_stderr(settings)
    # Every line of this process is about its job, whichever thread writes it.
    named = Named.in_order(order)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_shorten)
        handler.addFilter(partial(_name, named, order["worker"]))


def _name(attempt: Named, worker: str | None, record: logging.LogRecord) -> bool:
    vars(record).update(about(attempt), fairlane_worker=worker)
    return True


def go_on_in(carried: str | None) -> None:
    """What the task starts, calls and enqueues belongs to the trace of its attempt."""
    if carried is None:
        return
    trace.CURRENT.set(carried)
    os.environ.update(trace.environment(carried))
    if tracing.spans() is not None:  # the application has set up its own
        from fairlane.observe.spans import adopt

        adopt(carried)


def _shorten(record: logging.LogRecord) -> bool:
    """To look for secrets in megabytes would take the job's time."""
    message = record.getMessage()
    if len(message) > LONGEST:
        record.msg, record.args = beginning(message, LONGEST), None
    if fields := getattr(record, "fields", None):
        record.fields = _small(fields)
    return True


def write(report: BinaryIO, said: dict[str, Any]) -> None:
    """A whole line, however large: a pipe takes a piece at a time."""
    left = memoryview(json.dumps(said).encode() + b"\n")
    while left:
        left = left[report.write(left) :]


def bounded(outcome: Outcome) -> Outcome:
    """An error may quote anything, at any length: the worker would not hear it."""
    if isinstance(outcome, Failed) and len(str(outcome.error.get("message"))) > MESSAGE + MARGIN:
        message = beginning(str(outcome.error["message"]), MESSAGE + MARGIN)
        return replace(outcome, error={**outcome.error, "message": message})
    return outcome


class Words:
    """What the task says on its way, as lines for the worker to pass on."""

    def __init__(self, report: BinaryIO) -> None:
        self._report = report
        self._one_at_a_time = threading.Lock()

    def _say(self, kind: str, *words: Any) -> None:
        # Whatever it was: what cannot be written as JSON must not fail the task.
        with self._one_at_a_time, contextlib.suppress(TypeError, ValueError, RecursionError):
            write(self._report, {"kind": kind, "words": words})

    def line(self, level: str, message: str, fields: dict[str, Any]) -> None:
        self._say("line", level, _cut(message), _small(fields))

    def phase(self, name: str) -> None:
        self._say("phase", _cut(name))

    def progress(self, progress: dict[str, Any]) -> None:
        self._say("progress", _small(progress))

    def item(self, name: str, state: State, error: str | None, again: bool) -> None:
        self._say("item", name, state, error and beginning(error, LONGEST_ERROR))

    def output(self, stream: str, tail: str, total: int) -> None:
        self._say("output", stream, tail if len(tail) <= OUTPUT else ending(tail, OUTPUT), total)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else beginning(text, LONGEST)


def _small(fields: dict[str, Any]) -> dict[str, Any]:
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        size = len(json.dumps(fields))
        if size > FIELDS:
            return {"omitted": f"{size} characters of JSON; the limit is {FIELDS}"}
    return fields
