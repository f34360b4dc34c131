"""Events on their way: emitted by a connection of our own, or through the caller's."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from fairlane.client.adapters import Steps
from fairlane.client.aio import Pools
from fairlane.client.request import an_object, checked_text, encoded
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.correlation import passed_on
from fairlane.ids import uuid7

# Casts are spelled out: SQLAlchemy would take the second colon of `::text` for a parameter.
_EMIT = """\
select cast(to_json(e) as text)
  from fairlane.emit_many(cast(cast($1 as text) as jsonb)) e"""


@dataclass(frozen=True, kw_only=True)
class Emitted:
    """What emit answers. `duplicate`: the id was there before, and this is that event."""

    id: str
    tenant: str
    name: str
    emitted_at: datetime
    duplicate: bool = False


class _Answer(msgspec.Struct):
    id: str
    name: str
    emitted_at: datetime
    duplicate: bool


_answer = msgspec.json.Decoder(_Answer)


class Emission:
    """One event, with its id: sent once or many times, it is the same event."""

    def __init__(
        self,
        name: str,
        data: Mapping[str, Any] | None,
        tenant: str,
        *,
        id: str | None = None,  # noqa: A002 - the name it has everywhere
        correlation_id: str | None = None,
        limit: int,
    ) -> None:
        self.tenant = tenant
        self._is_new = id is None
        what = f'event "{name}"'
        found = an_object(what, {} if data is None else data)
        json.check(found, f"the data of {what}")
        encoded(what, found, limit)
        event = {
            "tenant": checked_text("tenant", tenant),
            "name": checked_text("name", name),
            "data": found,
            "id": str(uuid7()) if id is None else checked_text("id", str(id)),
            "correlation_id": correlation_id or passed_on(),
        }
        self.call = Call(_EMIT, (json.dumps([event]),))

    def steps(self) -> Steps[Emitted]:
        return self.answer((yield self.call))

    def answer(self, rows: list[str], *, again: bool = False) -> Emitted:
        found = _answer.decode(rows[0])
        return Emitted(
            id=found.id,
            tenant=self.tenant,
            name=found.name,
            emitted_at=found.emitted_at.astimezone(UTC),
            # An id of our own making was there before only if we sent it before.
            duplicate=found.duplicate and not (again and self._is_new),
        )

    async def by(self, pools: Pools) -> Emitted:
        """However often it arrives, it is one event."""
        rows, again = await pools.persist(lambda _: self.call)
        return self.answer([row[0] for row in rows], again=again)
