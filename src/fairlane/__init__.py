"""Fairlane: a multi-tenant job platform on Python and PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane import errors
    from fairlane.api.app import asgi, router
    from fairlane.app import Fairlane
    from fairlane.client.emitting import Emitted
    from fairlane.client.request import Request
    from fairlane.context import JobContext
    from fairlane.job import Enqueued, Job, JobStatus
    from fairlane.outcome import Fail, Snooze
    from fairlane.task import Task
    from fairlane.web.app import ui
    from fairlane.worker.main import run_worker

__all__ = [
    "Emitted",
    "Enqueued",
    "Fail",
    "Fairlane",
    "Job",
    "JobContext",
    "JobStatus",
    "Request",
    "Snooze",
    "Task",
    "asgi",
    "errors",
    "router",
    "run_worker",
    "ui",
]

# A name brings its module when it is asked for: `fairlane --help` needs no database driver.
_HOMES = {
    "Emitted": "fairlane.client.emitting",
    "Enqueued": "fairlane.job",
    "Fail": "fairlane.outcome",
    "Fairlane": "fairlane.app",
    "Job": "fairlane.job",
    "JobContext": "fairlane.context",
    "JobStatus": "fairlane.job",
    "Request": "fairlane.client.request",
    "Snooze": "fairlane.outcome",
    "Task": "fairlane.task",
    "asgi": "fairlane.api.app",
    "router": "fairlane.api.app",
    "run_worker": "fairlane.worker.main",
    "ui": "fairlane.web.app",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name == "errors":
            return import_module("fairlane.errors")
        raise AttributeError(f"module 'fairlane' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
