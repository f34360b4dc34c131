"""The door: turns what stands behind "Bearer" into a principal, or refuses it.

door = await Door.open(url, database, settings)         # in the server's lifespan
who = await door.admit(bearer_text)                     # Unauthenticated, ProviderUnavailable
who = await door.acting_for(who, slug)                  # an operator with X-Fairlane-Tenant
await door.close()
"""

import asyncio
import contextlib
from collections.abc import Callable
from uuid import UUID

from fairlane.access.acting import Database
from fairlane.access.oidc import OidcVerifier, Provider
from fairlane.access.principal import Principal
from fairlane.access.refusals import Forbidden, Unauthenticated
from fairlane.access.revocations import Revocations
from fairlane.access.roles import Role
from fairlane.access.secret import PREFIX
from fairlane.access.verifier import TokenVerifier
from fairlane.config import Settings
from fairlane.core.calls import Call
from fairlane.errors import TenantNotFound


class Door:
    """Tokens of our own by their prefix; anything else goes to the provider, if there is one.

    A token that was found good is not looked up again for 10 seconds; one that is revoked is
    forgotten at once where NOTIFY gets through, and within those 10 seconds where it does not.
    """

    def __init__(self, url: str, database: Database, provider: Provider | None) -> None:
        self._database = database
        self._tokens = TokenVerifier(database)
        self._oidc = None if provider is None else OidcVerifier(provider, self._tenant_id)
        self._tell: list[Callable[[str], None]] = [self._tokens.forget]
        self.revocations = Revocations(url, revoked=self._revoked, deaf=self._tokens.forget_all)
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str, database: Database, settings: Settings) -> "Door":
        door = cls(url, database, Provider.of(settings))
        door._listening = asyncio.create_task(door.revocations.run())
        return door

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening
        await self._tokens.close()
        if self._oidc is not None:
            await self._oidc.close()

    async def admit(self, bearer: str | None) -> Principal:
        """Who this is. Unauthenticated (401) or ProviderUnavailable (503) otherwise."""
        if not bearer:
            raise Unauthenticated("a token is needed: send it as Authorization: Bearer TOKEN")
        if self._oidc is None or bearer.startswith(PREFIX):
            return await self._tokens.verify(bearer)
        return await self._oidc.verify(bearer)

    async def admit_client(self, text: str, client: str) -> Principal:
        """Who the provider says has signed in to the web pages, its client."""
        if self._oidc is None:
            raise Unauthenticated("there is no sign-in provider")
        return await self._oidc.verify(text, client)

    async def acting_for(self, who: Principal, tenant: str) -> Principal:
        """The operator `who`, acting for one tenant. Forbidden for anybody else, TenantNotFound.

        Who belongs to a tenant may name it, which changes nothing.
        """
        if who.role.is_of_tenant and who.tenant == tenant:
            return who
        if who.role is not Role.OPERATOR:
            raise Forbidden("only an operator chooses the tenant to act for")
        tenant_id = await self._tenant_id(tenant)
        if tenant_id is None:
            raise TenantNotFound(f'tenant "{tenant[:80]}" is unknown; see: fairlane tenants list')
        return who.acting_for(tenant, tenant_id)

    def on_revoked(self, tell: Callable[[str], None]) -> None:
        """Have `tell(token_id)` called when a token is revoked (streams end by it)."""
        self._tell.append(tell)

    def _revoked(self, token_id: str) -> None:
        for tell in self._tell:
            tell(token_id)

    async def _tenant_id(self, slug: str) -> UUID | None:
        if "\x00" in slug:
            return None
        rows = await self._database.send(Call("select fairlane.tenant_id_of($1)", (slug,)))
        found: UUID | None = rows[0][0]
        return found
