"""Whoever calls, as everything below the door knows them."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from fairlane.access.roles import Permission, Role

# What `fairlane.tenant_id` is set to, and what the row policies make of it.
EVERY_TENANT = "*"
NO_TENANT = ""


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: proven by a token or by a provider, never by anything in a body.

    `tenant` and `tenant_id` come together: both are set for a viewer, member or admin, and for an
    operator who acts for one tenant; both are None for an operator over all and for a worker.
    """

    subject: str
    """Who the audit names: "token:AbC12345" or "oidc:<sub>"."""
    role: Role
    tenant: str | None = None
    tenant_id: UUID | None = None
    token_id: str | None = None
    """The token's id, for whoever must end when it is revoked; None for OpenID Connect."""
    expires_at: datetime | None = None
    """When the proof ends, where it does; a stream must not outlive it."""

    def __post_init__(self) -> None:
        if (self.tenant is None) != (self.tenant_id is None):
            raise ValueError("a principal has a tenant's slug and id, or neither")
        if self.role.is_of_tenant and self.tenant is None:
            raise ValueError(f"a principal of role {self.role} belongs to a tenant")
        if self.role is Role.WORKER and self.tenant is not None:
            raise ValueError("a worker belongs to no tenant")

    def may(self, permission: Permission) -> bool:
        return self.role.may(permission)

    def acting_for(self, tenant: str, tenant_id: UUID) -> "Principal":
        """An operator narrowed to one tenant (X-Fairlane-Tenant); nobody else may choose."""
        if self.role is not Role.OPERATOR:
            raise ValueError("only an operator chooses the tenant to act for")
        return replace(self, tenant=tenant, tenant_id=tenant_id)

    @property
    def scope(self) -> str:
        """What the transaction's `fairlane.tenant_id` is set to: an id, "*", or "" for no rows."""
        if self.tenant_id is not None:
            return str(self.tenant_id)
        return EVERY_TENANT if self.role is Role.OPERATOR else NO_TENANT
