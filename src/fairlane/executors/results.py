"""A task's return value as the JSON that is kept."""

from decimal import Decimal
from typing import Any

import msgspec

from fairlane.core import json
from fairlane.errors import FairlaneError, PayloadInvalid
from fairlane.outcome import Fail, Snooze


class ResultInvalid(FairlaneError):
    """What a task returned cannot be kept as its result."""


def encode(value: Any, key: str, limit: int) -> str | None:
    """The JSON text of a result; None for no result."""
    if value is None:
        return None
    if isinstance(value, Snooze | Fail):
        raise value  # returned, it means what it means when it is raised
    try:
        text = json.dumps(value)
        # msgspec writes NaN as null and passes NUL on; PostgreSQL and JSON know neither.
        json.check(msgspec.to_builtins(value, builtin_types=(Decimal,)), "the result")
    except PayloadInvalid as error:
        raise ResultInvalid(f"{error}; return JSON from {key}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultInvalid(f"the result of {key} is not JSON: {error}") from None
    size = len(text.encode())
    if size > limit:
        raise ResultInvalid(
            f"the result of {key} has {size} bytes, the limit is {limit}; "
            "store it elsewhere and return a reference"
        )
    return text
