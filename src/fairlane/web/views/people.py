"""/t/{tenant}/people: who has signed in lately, and where their roles come from."""

from starlette.responses import Response

from fairlane.access.oidc import Provider
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.web.visit import Visit

MOST = 200

# Those that are over are removed in time: who is here now, and who was lately.
LATELY = """
select s.subject, max(s.last_seen_at) as seen_at, min(s.created_at) as since,
       (array_agg(s.role order by s.created_at desc))[1] as role,
       count(*) filter (where s.expires_at > fairlane.clock()
                          and s.last_seen_at + s.idle > fairlane.clock()
                          and k.revoked_at is null
                          and coalesce(k.expires_at > fairlane.clock(), true))::int as open,
       (array_agg(k.name order by s.created_at desc))[1] as key_name,
       (array_agg(s.token_id order by s.created_at desc))[1] as token_id
  from (select tenant_id, subject, role, token_id, created_at, last_seen_at, idle, expires_at
          from fairlane.web_session
         where tenant_id = $1
         order by expires_at desc
         limit 1000) s
  left join fairlane.tokens k on k.id = s.token_id
 group by s.subject
 order by seen_at desc
 limit $2
"""
BY_KEY = """
select id, name, role, last_used_at from fairlane.tokens
 where tenant_id = $1 and last_used_at is not null and revoked_at is null
 order by last_used_at desc
 limit 50
"""


async def show(visit: Visit) -> Response:
    async with visit.reading() as connection:
        people = await send(connection, Call(LATELY, (visit.who.tenant_id, MOST)))
        callers = await send(connection, Call(BY_KEY, (visit.who.tenant_id,)))
    return await visit.show(
        "people.html",
        people=people,
        callers=callers,
        provider=Provider.of(visit.here.settings),
    )
