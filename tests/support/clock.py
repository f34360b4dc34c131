"""The clock of a test database, to stop and to move: the one that users get."""

from fairlane.testing.clock import DatabaseClock as Clock

__all__ = ["Clock"]
