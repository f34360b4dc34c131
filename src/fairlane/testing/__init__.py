"""For users' own tests: jobs without a server, and a real database for each test."""

from typing import TYPE_CHECKING, Any

from fairlane.testing.clock import Clock
from fairlane.testing.database import Database, fresh_database
from fairlane.testing.diversion import inline
from fairlane.testing.inline_job import InlineJob
from fairlane.testing.inlined import InlineJobs
from fairlane.testing.runs import LogLine, Run, RunOutcome
from fairlane.testing.solo import run, run_sync

if TYPE_CHECKING:
    from fairlane.testing.fixtures import fairlane_database
else:

    def __getattr__(name: str) -> Any:
        """The fixture needs pytest; nothing else here does."""
        if name == "fairlane_database":
            from fairlane.testing.fixtures import fairlane_database

            return fairlane_database
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Clock",
    "Database",
    "InlineJob",
    "InlineJobs",
    "LogLine",
    "Run",
    "RunOutcome",
    "fairlane_database",
    "fresh_database",
    "inline",
    "run",
    "run_sync",
]
