"""Who changed what: the audit by filter, newest first, for the calls and the web pages alike."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fairlane.access.principal import Principal
from fairlane.api.answers import plain
from fairlane.api.listing import WINDOW
from fairlane.api.paging import Page
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send

# A filter is asked of what comes out of the index, and of no more than the window.
CHANGES = """
select a.id, a.at, a.actor, a.action, t.slug as tenant, a.target, a.detail
  from (select * from fairlane.audit
         where ($1::bigint is null or id < $1)
           and ($2::uuid is null or tenant_id = $2)
         order by id desc
         limit {window}) a
  left join fairlane.tenant t on t.id = a.tenant_id
 where ($3::text is null or a.action = $3 or starts_with(a.action, $3 || '.'))
   and ($4::text is null or a.actor = $4)
   and ($5::text is null or a.target = $5)
   and ($6::timestamptz is null or a.at >= $6)
   and ($7::timestamptz is null or a.at < $7)
 order by a.id desc
 limit $8
"""
FLOOR = """
select id from fairlane.audit
 where ($1::bigint is null or id < $1)
   and ($2::uuid is null or tenant_id = $2)
 order by id desc
offset {window} - 1 limit 1
"""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    action: str | None = None
    """The whole of it, or what stands before its dot."""
    actor: str | None = None
    target: str | None = None
    after: datetime | None = None
    before: datetime | None = None


async def changes_of(
    connection: Connection, who: Principal, wanted: Wanted, part: Page
) -> tuple[list[dict[str, Any]], str | None]:
    """A page of changes, one tenant's where `who` acts for one, and where to go on: also behind a
    page that is short because the window ended."""
    args = (
        *(part.below, who.tenant_id, wanted.action, wanted.actor, wanted.target),
        *(wanted.after, wanted.before, part.rows),
    )
    rows = await send(connection, Call(CHANGES.format(window=WINDOW), args))
    shown = [plain(row, "detail") for row in rows[part.offset :][: part.limit]]
    if len(rows) == part.rows:
        return shown, str(shown[-1]["id"])
    floor = await send(connection, Call(FLOOR.format(window=WINDOW), args[:2]))
    return shown, str(floor[0]["id"]) if floor else None
