"""One PostgreSQL for a run of the tests, and a fresh database for each: those that users get."""

from fairlane.testing.server import Server as Cluster
from fairlane.testing.server import running

__all__ = ["Cluster", "running"]
