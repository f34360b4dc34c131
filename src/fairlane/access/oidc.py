"""Sign-in by OpenID Connect: a provider's JWT, proven by its keys, read for tenant and role."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import jwt
from jwt.exceptions import PyJWTError

from fairlane.access.jwks import Keys
from fairlane.access.principal import Principal
from fairlane.access.refusals import Unauthenticated
from fairlane.access.roles import Role
from fairlane.config import Settings

# What a public key verifies.
ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
LEEWAY = 30
LONGEST = 16_384
LONGEST_NAME = 200

REFUSAL = "the sign-in is not good, or has expired; sign in again"

FindTenant = Callable[[str], Awaitable[UUID | None]]


@dataclass(frozen=True, kw_only=True)
class Provider:
    """Whom we believe, and what its claims mean here."""

    issuer: str
    audience: str
    jwks_url: str | None = None
    tenant_claim: str = "tenant"
    role_claim: str = "role"
    roles: Mapping[str, str] = field(default_factory=dict)
    """Theirs to ours; empty where they use our names."""

    @classmethod
    def of(cls, settings: Settings) -> "Provider | None":
        if settings.oidc_issuer is None or settings.oidc_audience is None:
            return None
        return cls(
            issuer=settings.oidc_issuer,
            audience=settings.oidc_audience,
            jwks_url=settings.oidc_jwks_url,
            tenant_claim=settings.oidc_tenant_claim,
            role_claim=settings.oidc_role_claim,
            roles=settings.oidc_roles,
        )


class OidcVerifier:
    """Who a provider's JWT speaks of; Unauthenticated or ProviderUnavailable otherwise."""

    def __init__(self, provider: Provider, find_tenant: FindTenant) -> None:
        self._provider = provider
        self._find_tenant = find_tenant
        self._keys = Keys(provider.issuer, provider.jwks_url)

    async def close(self) -> None:
        await self._keys.close()

    async def verify(self, text: str, audience: str | None = None) -> Principal:
        """`audience`: whom else than us the provider may have written it for, which is the client
        that our own web pages are to it."""
        claims = await self._claims(text, audience or self._provider.audience)
        role = self._role(claims)
        subject = f"oidc:{_named(claims['sub'])}"
        expires_at = _moment(claims["exp"])
        if not role.is_of_tenant:
            return Principal(subject, role, expires_at=expires_at)
        tenant = _claim(claims, self._provider.tenant_claim)
        tenant_id = await self._find_tenant(_named(tenant))
        if tenant_id is None:
            # In the same words as anything else: a stranger learns of no tenant.
            raise Unauthenticated(REFUSAL)
        return Principal(subject, role, tenant, tenant_id, expires_at=expires_at)

    async def _claims(self, text: str, audience: str) -> dict[str, Any]:
        if len(text) > LONGEST:
            raise Unauthenticated(REFUSAL)
        try:
            header = jwt.get_unverified_header(text)
            algorithm, key_id = header.get("alg"), header.get("kid")
            if algorithm not in ALGORITHMS or not isinstance(key_id, str | None):
                raise Unauthenticated(REFUSAL)
            key = await self._keys.key(key_id)
            if key is None or not key.fits(algorithm):
                raise Unauthenticated(REFUSAL)
            claims: dict[str, Any] = jwt.decode(
                text,
                key.public,
                algorithms=[algorithm],
                issuer=self._provider.issuer,
                audience=audience,
                leeway=LEEWAY,
                options={"require": ["iss", "aud", "exp", "sub"]},
            )
        except (PyJWTError, ValueError, TypeError):
            raise Unauthenticated(REFUSAL) from None
        return claims

    def _role(self, claims: Mapping[str, Any]) -> Role:
        """The highest of those that the claim names and that are known here."""
        said = _claim(claims, self._provider.role_claim)
        names = said if isinstance(said, list) else [said]
        roles = self._provider.roles
        found = {roles.get(name) if roles else name for name in names if isinstance(name, str)}
        for role in (Role.OPERATOR, Role.ADMIN, Role.MEMBER, Role.VIEWER, Role.WORKER):
            if role.value in found:
                return role
        raise Unauthenticated(REFUSAL)


def _named(claim: Any) -> str:
    """A name that can be written down: in the audit, and beside each job."""
    if not isinstance(claim, str) or not 0 < len(claim) <= LONGEST_NAME or "\x00" in claim:
        raise Unauthenticated(REFUSAL)
    try:
        claim.encode()
    except UnicodeEncodeError:  # half a character
        raise Unauthenticated(REFUSAL) from None
    return claim


def _moment(claim: Any) -> datetime:
    try:
        return datetime.fromtimestamp(claim, UTC)
    except (OverflowError, ValueError, OSError, TypeError):
        raise Unauthenticated(REFUSAL) from None


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name; by a path with dots where no claim has that very name."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
