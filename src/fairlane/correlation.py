"""The correlation id of the call that is being answered, for every log line on the way."""

from contextvars import ContextVar

CURRENT: ContextVar[str | None] = ContextVar("fairlane_correlation_id", default=None)
