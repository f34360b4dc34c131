"""What stands where a secret was."""

MARKER = "[redacted]"
