"""Is a token good, and whose is it?"""

import asyncio
import hmac
import logging
import time
from dataclasses import dataclass
from datetime import datetime

from fairlane.access import secret
from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.access.refusals import Unauthenticated
from fairlane.access.roles import Role
from fairlane.access.secret import Secret
from fairlane.core.calls import Call

log = logging.getLogger(__name__)

REMEMBERED = 10.0
MOST_REMEMBERED = 10_000

REFUSAL = (
    "the token is not good: unknown, expired or revoked; make one with: fairlane tokens create"
)

# Compared with where there is no token, so that an unknown id takes the same steps.
NOBODY = bytes(32)


@dataclass(frozen=True, slots=True)
class Known:
    principal: Principal
    until: float


class TokenVerifier:
    """Looks tokens up by their id and remembers the good ones for a moment.

    One that is revoked is forgotten when `forget` says so, and after 10 seconds in any case.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, Known] = {}
        self._heard = 0  # how often something was to be forgotten
        self._chores: set[asyncio.Task[object]] = set()

    async def verify(self, text: str) -> Principal:
        """Whose token this is; Unauthenticated where it is nobody's."""
        given = secret.read(text)
        if given is None:
            raise Unauthenticated(REFUSAL)
        found = self._known.get(given.hash)
        if found is not None and time.monotonic() < found.until:
            return found.principal
        return await self._look_up(given)

    def forget(self, token_id: str) -> None:
        """It was revoked."""
        self._heard += 1
        self._known = {
            key: known for key, known in self._known.items() if known.principal.token_id != token_id
        }

    def forget_all(self) -> None:
        """Word of what was revoked may have been missed."""
        self._heard += 1
        self._known.clear()

    async def close(self) -> None:
        await asyncio.gather(*self._chores, return_exceptions=True)

    async def _look_up(self, given: Secret) -> Principal:
        asked = time.monotonic()
        heard = self._heard
        rows = await self._database.send(Call("select * from fairlane.token_for($1)", (given.id,)))
        row = rows[0] if rows else None
        same = hmac.compare_digest(given.hash, NOBODY if row is None else row["hash"])
        if row is None or not same or row["revoked"]:
            raise Unauthenticated(REFUSAL)
        left: float | None = row["seconds_left"]
        if left is not None and left <= 0:
            raise Unauthenticated(REFUSAL)
        expires_at: datetime | None = row["expires_at"]
        principal = Principal(
            subject=f"token:{given.id}",
            role=Role(row["role"]),
            tenant=row["tenant"],
            tenant_id=row["tenant_id"],
            token_id=given.id,
            expires_at=expires_at,
        )
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        # What happened since it was asked is not in the answer.
        if heard == self._heard:
            remembered = REMEMBERED if left is None else min(REMEMBERED, left)
            self._known[given.hash] = Known(principal, asked + remembered)
        if not row["used_lately"]:
            self._note_use(given.id)
        return principal

    def _note_use(self, token_id: str) -> None:
        """In the background: nobody waits for it, and nothing depends on it."""
        call = Call("select fairlane.touch_token($1)", (token_id,))
        chore = asyncio.create_task(_quietly(self._database, call))
        self._chores.add(chore)
        chore.add_done_callback(self._chores.discard)


async def _quietly(database: Database, call: Call) -> None:
    try:
        await database.send(call)
    except Exception:
        log.warning("could not write down that a token was used", exc_info=True)
