"""Times in bodies and filters: RFC 3339 with an offset, and nothing that merely could be one."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def moment(given: Any) -> Any:
    """In UTC. A plain number is not a time: 2026 would be half an hour after midnight, in 1970."""
    if given is None or isinstance(given, datetime):
        return given
    try:
        if not isinstance(given, str) or len(given) > 40 or not _RFC_3339.fullmatch(given):
            raise ValueError
        return datetime.fromisoformat(given.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PydanticCustomError(
            "moment", "must be a time with its offset, as in 2026-02-16T10:30:00Z (RFC 3339)"
        ) from None


Moment = Annotated[AwareDatetime, BeforeValidator(moment)]
