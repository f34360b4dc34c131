"""Tenants from the application's own code: at sign-up and at a change of plan, in its own
transaction."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from fairlane.client import adapters
from fairlane.client.adapters import Steps
from fairlane.client.request import checked_text
from fairlane.core import json
from fairlane.core.calls import Call

T = TypeVar("T")

# Casts are spelled out: SQLAlchemy would take the second colon of `::text` for a parameter.
_ASKED = "(select cast(cast($1 as text) as jsonb) as asked) a"
_CREATE = f"""\
select cast(fairlane.create_tenant(asked ->> 'slug', asked ->> 'plan', asked ->> 'name',
                                   asked -> 'limits') as text)
  from {_ASKED}"""  # noqa: S608 - fixed parts
_CREATE_IF_MISSING = f"""{_CREATE}
 where not exists (select from fairlane.tenant t where t.slug = asked ->> 'slug')"""
_SET = f"""\
select cast(fairlane.set_tenant(asked ->> 'slug', asked -> 'changes') as text)
  from {_ASKED}"""  # noqa: S608


class TenantLimits(TypedDict, total=False):
    """What a tenant may have of its own; None is its plan's."""

    weight: float | None
    max_running: int | None
    starts_per_minute: int | None
    max_backlog: int | None
    backlog_policy: Literal["warn", "reject"] | None


class TenantChanges(TenantLimits, total=False):
    plan: str
    name: str


class Tenants(ABC):
    """`connection` is your own open transaction, as in `enqueue`: the tenant is there, or changed,
    if and only if it commits."""

    async def create_tenant(
        self,
        slug: str,
        plan: str = "free",
        *,
        name: str = "",
        exists_ok: bool = False,
        connection: Any = None,
        **limits: Unpack[TenantLimits],
    ) -> None:
        """Add a tenant. With `exists_ok`, one that is there stays as it is."""
        await self._send_tenant(_creating(slug, plan, name, limits, exists_ok), connection)

    def create_tenant_sync(
        self,
        slug: str,
        plan: str = "free",
        *,
        name: str = "",
        exists_ok: bool = False,
        connection: Any = None,
        **limits: Unpack[TenantLimits],
    ) -> None:
        """The same, for code without an event loop."""
        self._send_tenant_sync(_creating(slug, plan, name, limits, exists_ok), connection)

    async def set_tenant(
        self, slug: str, *, connection: Any = None, **changes: Unpack[TenantChanges]
    ) -> None:
        """Change a tenant: its plan, its name, limits of its own. What runs goes on."""
        await self._send_tenant(_setting(slug, changes), connection)

    def set_tenant_sync(
        self, slug: str, *, connection: Any = None, **changes: Unpack[TenantChanges]
    ) -> None:
        """The same, for code without an event loop."""
        self._send_tenant_sync(_setting(slug, changes), connection)

    @abstractmethod
    async def persist(self, call: "Sendable") -> None:
        """Send what may arrive twice until the database has answered."""

    @abstractmethod
    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T: ...

    async def _send_tenant(self, call: "Sendable", connection: Any) -> None:
        if connection is None:
            await self.persist(call)
        else:
            await adapters.through(connection, _once(call))

    def _send_tenant_sync(self, call: "Sendable", connection: Any) -> None:
        if connection is None:
            self.wait(self.persist(call))
        else:
            adapters.through_sync(connection, _once(call))


Sendable = Callable[[bool], Call]  # told whether an answer was lost before


def _creating(
    slug: str, plan: str, name: str, limits: Mapping[str, Any], exists_ok: bool
) -> Sendable:
    asked = {
        "slug": checked_text("tenant", slug),
        "plan": checked_text("plan", plan),
        "name": name,
        "limits": limits,
    }
    body = json.dumps(asked)
    # One whose answer was lost may be there by now, and is ours.
    return lambda again: Call(_CREATE_IF_MISSING if exists_ok or again else _CREATE, (body,))


def _setting(slug: str, changes: Mapping[str, Any]) -> Sendable:
    body = json.dumps({"slug": checked_text("tenant", slug), "changes": changes})
    return lambda again: Call(_SET, (body,))


def _once(call: Sendable) -> Steps[None]:
    yield call(False)
