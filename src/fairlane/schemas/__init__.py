"""JSON Schema as definitions use it: draft 2020-12, nothing fetched, every cost bounded."""

from fairlane.schemas.canonical import canonical, inputs_hash
from fairlane.schemas.schema import Schema, accept, check_result, compile, fitted  # noqa: A004

__all__ = ["Schema", "accept", "canonical", "check_result", "compile", "fitted", "inputs_hash"]
