"""Tokens: made, shown once, listed, revoked.

Everything here takes a connection: of `Database.acting(who)` in the server, or the owner's own on
the command line. The database's rules hold on both.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from fairlane.access import secret
from fairlane.access.refusals import TokenNotFound, TokenRefused
from fairlane.access.roles import Role
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send

NAME_LENGTH = 200
LONGEST = timedelta(days=36_500)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token as it may be shown: everything but its text."""

    id: str
    role: Role
    tenant: str | None
    tenant_id: UUID | None
    name: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def fields_of(cls, row: Record) -> dict[str, Any]:
        return {**dict(row), "role": Role(row["role"])}

    def as_dict(self) -> dict[str, Any]:
        """The API's shape."""
        return {
            "id": self.id,
            "name": self.name,
            "role": self.role.value,
            "tenant": self.tenant,
            "created_at": self.created_at,
            "created_by": self.created_by,
            "expires_at": self.expires_at,
            "last_used_at": self.last_used_at,
            "revoked_at": self.revoked_at,
        }


@dataclass(frozen=True, kw_only=True)
class NewToken(Token):
    """A token at the only moment when its text is known."""

    token: str

    def as_dict(self) -> dict[str, Any]:
        """The API's shape, with `token` first."""
        return {"token": self.token, **super().as_dict()}

    def __repr__(self) -> str:
        return f"NewToken(id={self.id!r}, role={self.role!r}, tenant={self.tenant!r})"


async def create(
    connection: Connection,
    role: Role,
    *,
    tenant: str | None = None,
    name: str = "",
    expires_in: timedelta | None = None,
) -> NewToken:
    """Make a token; audited. TokenRefused, TenantNotFound."""
    if role.is_of_tenant and tenant is None:
        raise TokenRefused(f"a {role} belongs to a tenant; name it")
    if not role.is_of_tenant and tenant is not None:
        raise TokenRefused(f"a token of role {role} is for all tenants; leave the tenant out")
    if len(name) > NAME_LENGTH or "\x00" in name:
        raise TokenRefused(f"a token's name has at most {NAME_LENGTH} characters, none of them NUL")
    if expires_in is not None and not timedelta(0) < expires_in <= LONGEST:
        raise TokenRefused("a token lasts for some time ahead, at most 100 years")
    made = secret.make()
    rows = await send(
        connection,
        Call(
            "select * from fairlane.create_token($1, $2, $3, $4, $5, $6)",
            (made.id, made.hash, role.value, tenant, name, expires_in),
        ),
    )
    return NewToken(**Token.fields_of(rows[0]), token=made.text)


async def tokens(
    connection: Connection,
    tenant: str | None = None,
    *,
    after: str | None = None,
    most: int = 50,
) -> list[Token]:
    """A page of tokens by id, `tenant`'s or all that the connection may see."""
    rows = await send(
        connection,
        Call(
            """
            select * from fairlane.tokens
             where id > $1 and ($2::text is null or tenant = $2)
             order by id limit $3
            """,
            (after or "", tenant, most),
        ),
    )
    return [Token(**Token.fields_of(row)) for row in rows]


async def revoke(connection: Connection, token_id: str, tenant: str | None = None) -> Token:
    """End a token now; audited. TokenNotFound where it is not there, or is another tenant's."""
    call = Call("select * from fairlane.revoke_token($1, $2)", (token_id, tenant))
    rows = [] if "\x00" in token_id else await send(connection, call)
    if not rows:
        raise TokenNotFound(f'token "{token_id[:80]}" is not there; see: fairlane tokens list')
    return Token(**Token.fields_of(rows[0]))


async def first_operator_token(connection: Connection) -> str | None:
    """The text of the first operator token, if there was none and this call made it.

    For the owner's connection, at the start: of several that start at once, one gets it.
    """
    made = secret.make()
    call = Call("select fairlane.create_first_token($1, $2)", (made.id, made.hash))
    rows = await send(connection, call)
    return made.text if rows[0][0] else None
