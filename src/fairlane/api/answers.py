"""Answers as bytes: rows hold what is shown already, so that nothing is validated a second time."""

from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg
from starlette.responses import Response

from fairlane.core import json
from fairlane.shapes import page

JSON = "application/json"


def answer(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type=JSON)


def page_of(items: Sequence[Any], cursor: str | None = None) -> Response:
    return answer(page(items, cursor))


def plain(row: "Mapping[str, Any] | asyncpg.Record", *documents: str) -> dict[str, Any]:
    """A row as it is shown; asyncpg gives `documents`, its jsonb columns, as text."""
    shown = dict(row)
    for name in documents:
        if isinstance(shown[name], str):
            shown[name] = json.loads(shown[name])
    return shown
