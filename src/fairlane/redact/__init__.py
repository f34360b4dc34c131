"""Keeps secrets out of what is stored for people and shown to them; docs/redaction.md."""

from fairlane.redact.known import KNOWN, Known
from fairlane.redact.marker import MARKER
from fairlane.redact.redactor import Redactor
from fairlane.redact.speaking import SPEAKING, speaking

__all__ = ["KNOWN", "MARKER", "SPEAKING", "Known", "Redactor", "speaking"]
