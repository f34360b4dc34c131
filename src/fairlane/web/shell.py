"""What stands around every page: the navigation, the tenants to choose from, what waits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlane.core.calls import Call
from fairlane.core.connect import send

if TYPE_CHECKING:
    from fairlane.web.visit import Visit

TENANTS = 200
COUNTED = 99

DEAD = """
select count(*)::int
  from (select from fairlane.dead_letter
         where tenant_id = $1 and status = 'pending' limit 100) n
"""

# What an operator is told wherever they are: alerts that fire, workers that are lost.
TROUBLE = """
select (select count(*)::int from (select from fairlane.alert
                                    where state = 'firing' limit 100) n) as alerts,
       (select count(*)::int from (select from fairlane.workers
                                    where state = 'lost' and stopped_at is null
                                      and last_seen_at > fairlane.clock() - interval '1 day'
                                    limit 100) n) as workers
"""


@dataclass(frozen=True)
class Link:
    name: str
    title: str
    url: str
    key: str
    is_here: bool
    count: str = ""


async def frame_of(visit: "Visit") -> dict[str, Any]:
    """The context of base.html. Someone who is not signed in has no navigation."""
    if not visit.is_signed_in:
        return {"nav": {}, "tenants": []}
    counts: dict[str, str] = {}
    tenants: list[str] = []
    async with visit.reading() as connection:
        if visit.tenant is not None:
            (row,) = await send(connection, Call(DEAD, (visit.who.tenant_id,)))
            counts["dead_letters"] = _few(row[0])
        elif visit.is_operator:
            (row,) = await send(connection, Call(TROUBLE))
            counts |= {"alerts": _few(row["alerts"]), "workers": _few(row["workers"])}
    if visit.is_operator:
        tenants = await _tenants(visit)
    return {"nav": _groups(visit, counts), "tenants": tenants}


def _few(count: int) -> str:
    return "" if not count else f"{COUNTED}+" if count > COUNTED else str(count)


async def _tenants(visit: "Visit") -> list[str]:
    over_all = visit.ui.over_all(visit.who)
    call = Call("select slug from fairlane.tenant order by slug limit $1", (TENANTS,))
    async with visit.here.database.acting(over_all, within=2) as connection:
        return [row["slug"] for row in await send(connection, call)]


def _groups(visit: "Visit", counts: dict[str, str]) -> dict[str, list[Link]]:
    groups: dict[str, list[Link]] = {}
    for link, group in _links(visit, counts):
        groups.setdefault(group, []).append(link)
    return groups


def _links(visit: "Visit", counts: dict[str, str]) -> Iterator[tuple[Link, str]]:
    inside = visit.tenant is not None
    for page in visit.ui.pages:
        if not page.group or page.of_tenant is not inside or not page.lets_in(visit.who):
            continue
        url = visit.u(page.name, visit.tenant) if inside else visit.u(page.name)
        is_here = visit.page.name == page.name or visit.page.under == page.name
        link = Link(page.name, page.title, url, page.key, is_here, counts.get(page.name, ""))
        yield link, page.group
