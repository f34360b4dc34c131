"""Who is signed in. A browser holds an opaque secret; the database holds its hash."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import timedelta

from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.core.calls import Call
from fairlane.core.connect import send

IDLE = timedelta(hours=12)
LONGEST = timedelta(days=7)
# A provider's word is not asked for again, so it holds for a working day.
LONGEST_BY_PROVIDER = timedelta(hours=12)


@dataclass(frozen=True)
class Session:
    """One browser that is signed in."""

    secret: str = field(repr=False)
    who: Principal


class Sessions:
    """Sessions in the database, so that every server process knows them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, who: Principal) -> Session:
        """Audited. A token's session ends with the token."""
        secret = secrets.token_urlsafe(32)
        lasts = LONGEST if who.token_id is not None else LONGEST_BY_PROVIDER
        call = Call(
            "select fairlane.open_session($1, $2, $3, $4, $5, $6, $7)",
            (hashed(secret), who.subject, who.role.value, who.tenant, who.token_id, IDLE, lasts),
        )
        async with self._database.acting(who) as connection:
            await send(connection, call)
        return Session(secret, who)

    async def find(self, secret: str | None) -> Session | None:
        """The session, if it is still good: one round trip, nothing remembered, so that one that
        is ended is ended everywhere at once."""
        if not secret or len(secret) > 100:
            return None
        call = Call("select * from fairlane.session_for($1)", (hashed(secret),))
        rows = await self._database.send(call)
        if not rows:
            return None
        row = rows[0]
        who = Principal(
            subject=row["subject"],
            role=Role(row["role"]),
            tenant=row["tenant"],
            tenant_id=row["tenant_id"],
            token_id=row["token_id"],
            expires_at=row["expires_at"],
        )
        return Session(secret, who)

    async def end(self, session: Session) -> None:
        call = Call("select fairlane.end_session($1)", (hashed(session.secret),))
        await self._database.send(call)


def hashed(secret: str) -> bytes:
    # Random and long: nothing is gained by a slow hash.
    return hashlib.sha256(secret.encode()).digest()
