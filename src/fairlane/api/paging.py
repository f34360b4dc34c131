"""Pages of a list: `limit`, `cursor`, and `offset` for small offsets."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from fairlane.api.answers import page_of
from fairlane.api.problems import Problem
from fairlane.errors import Fault

MOST = 200
FARTHEST = 1000


class Page(BaseModel):
    """Which part of a list is asked for."""

    model_config = ConfigDict(frozen=True)

    limit: int = 50
    cursor: str | None = None
    offset: int = 0

    @property
    def rows(self) -> int:
        """How many rows to read: one more than is shown tells whether there are more."""
        return self.offset + self.limit + 1

    @property
    def before(self) -> UUID | None:
        """The id behind which a list by id, newest first, goes on."""
        if self.cursor is None:
            return None
        try:
            return UUID(self.cursor)
        except ValueError:
            raise no_cursor() from None

    @property
    def after(self) -> str:
        """The name behind which a list by name goes on."""
        return self.cursor or ""

    @property
    def below(self) -> int | None:
        """The number below which a list by number, newest first, goes on."""
        if self.cursor is None:
            return None
        if not self.cursor.isdecimal() or not self.cursor.isascii() or len(self.cursor) > 18:
            raise no_cursor()
        return int(self.cursor)


def no_cursor() -> Problem:
    fault = Fault("query:cursor", "does not come from this list; leave it out to begin at the top")
    return Problem(422, f"the request is invalid: {fault}", "invalid", [fault])


async def page(
    limit: Annotated[int, Query(ge=1, le=MOST, description="Items a page.")] = 50,
    cursor: Annotated[
        str | None,
        Query(max_length=200, description="`next_cursor` of the page before."),
    ] = None,
    offset: Annotated[
        int, Query(ge=0, le=FARTHEST, description="Items to skip; a cursor goes any distance.")
    ] = 0,
) -> Page:
    if cursor is not None and "\x00" in cursor:
        raise no_cursor()
    return Page(limit=limit, cursor=cursor, offset=offset)


def part_of(rows: Sequence[dict[str, Any]], part: Page, name: str = "name") -> Response:
    """A page of a list that is short enough to be read whole; `name` tells its rows apart."""
    start = part.offset
    if part.cursor is not None:
        names = [str(row[name]) for row in rows]
        if part.cursor not in names:
            raise no_cursor()
        start += names.index(part.cursor) + 1
    end = start + part.limit
    return page_of(rows[start:end], str(rows[end - 1][name]) if end < len(rows) else None)
