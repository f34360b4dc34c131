"""The database role that the server acts as, looked at before anything is served."""

from typing import Any

import asyncpg

from fairlane.access.refusals import ServerRoleMissing
from fairlane.core.connect import connected

ROLE = "fairlane_server"

STATE = """
select current_user::text as "user",
       r.oid is not null as there,
       coalesce(r.rolsuper or r.rolbypassrls, false) as unbound,
       coalesce(pg_has_role(r.oid, n.nspowner, 'USAGE'), false) as owns,
       coalesce(has_schema_privilege(r.oid, n.oid, 'USAGE'), false) as granted,
       coalesce(pg_has_role(current_user, r.oid, case when $2 then 'SET' else 'MEMBER' end), false)
         as allowed,
       pg_has_role(current_user, n.nspowner, 'USAGE') as owner
  from pg_namespace n
  left join pg_roles r on r.rolname = $1
 where n.nspname = 'fairlane'
"""


async def make_ready(url: str) -> None:
    """Refuse, in a sentence that says what to do, where row security would not bind the server.

    An administrator may have made the role after the schema was migrated: then it is given here
    what a migration would have given it.
    """
    async with connected(url, name="fairlane server") as connection, connection.transaction():
        state = await _state(connection)
        if not (state["there"] and state["granted"] and state["allowed"]) and state["owner"]:
            problem = await connection.fetchval("select fairlane.grant_access()")
            if problem is not None:
                raise ServerRoleMissing(problem)
            state = await _state(connection)
        _refuse_what_is_wrong(state)


async def _state(connection: asyncpg.Connection) -> Any:
    # Since 16 a member may be one who cannot take the role on.
    can_tell = connection.get_server_version().major >= 16
    state = await connection.fetchrow(STATE, ROLE, can_tell)
    if state is None:
        raise ServerRoleMissing("the database has no schema yet; run: fairlane migrate")
    return state


def _refuse_what_is_wrong(state: Any) -> None:
    user = '"{}"'.format(state["user"].replace('"', '""'))
    if not state["there"]:
        raise ServerRoleMissing(
            f'the database has no role "{ROLE}" for the server to act as; have an administrator '
            f"run: create role {ROLE} nologin; grant {ROLE} to {user}; and the owner of the "
            "schema: select fairlane.grant_access()"
        )
    if not state["allowed"]:
        raise ServerRoleMissing(
            f"user {user} may not act as {ROLE}; have an administrator run: grant {ROLE} to {user}"
        )
    if not state["granted"]:
        raise ServerRoleMissing(
            f"role {ROLE} may not use the schema yet; have the owner of the schema run: "
            "select fairlane.grant_access()"
        )
    if state["unbound"] or state["owns"]:
        raise ServerRoleMissing(
            f"role {ROLE} is not bound by row security, so it would show one tenant another's "
            f"rows; run: alter role {ROLE} nosuperuser nobypassrls, and take the ownership of the "
            "schema from it"
        )
