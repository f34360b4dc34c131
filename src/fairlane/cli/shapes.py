"""Rows as the API shows them."""

from fairlane.shapes import (
    SPOKEN,
    dead_letter,
    definition,
    job,
    message,
    operation,
    page,
    without_secrets,
)

__all__ = [
    "SPOKEN",
    "dead_letter",
    "definition",
    "job",
    "message",
    "operation",
    "page",
    "without_secrets",
]
