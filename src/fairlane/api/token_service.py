"""Tokens made and revoked by whoever may, for the calls and the web pages alike."""

from datetime import timedelta

from fairlane.access import tokens
from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.access.tokens import NewToken, Token
from fairlane.api.problems import Problem
from fairlane.api.service import Service


async def make_token(
    here: Service, who: Principal, role: Role, name: str, seconds: int | None
) -> NewToken:
    """An admin makes tokens of its own tenant; an operator also those that belong to none."""
    if not role.is_of_tenant and who.role is not Role.OPERATOR:
        raise Problem(403, f"only an operator makes a token of role {role}", "forbidden")
    if role.is_of_tenant and who.tenant is None:
        raise Problem(
            422, "name the tenant that the token is for: X-Fairlane-Tenant", "tenant-needed"
        )
    async with here.database.acting(who) as connection:
        return await tokens.create(
            connection,
            role,
            tenant=who.tenant if role.is_of_tenant else None,
            name=name,
            expires_in=None if seconds is None else timedelta(seconds=seconds),
        )


async def end_token(here: Service, who: Principal, token_id: str) -> Token:
    """It ends at once, and with it the streams that it opened."""
    async with here.database.acting(who) as connection:
        revoked = await tokens.revoke(connection, token_id, who.tenant)
    # Here it ends before the answer; other servers hear of it.
    here.door._revoked(revoked.id)
    return revoked
