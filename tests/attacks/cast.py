"""Whoever calls: every role of one tenant, an admin of another, and those who belong to none."""

from dataclasses import dataclass

from api.calls import Operation
from api.world import Caller, World

TENANTS = ("acme", "other")


@dataclass(frozen=True)
class Player:
    """A caller, and what is known of it: its role, and the tenant whose things are its own."""

    name: str
    caller: Caller
    role: str | None
    tenant: str | None = None

    def may(self, operation: Operation) -> bool:
        return self.role in operation.allowed

    def __str__(self) -> str:
        return self.name


async def cast_of(world: World) -> dict[str, Player]:
    """The seven of the plan, and the operator once more, acting for a tenant."""
    operator = await world.caller("operator")
    players = [
        Player("anonymous", world.stranger(), None),
        *[
            Player(role, await world.caller(role, "acme"), role, "acme")
            for role in ("viewer", "member", "admin")
        ],
        Player("rival", await world.caller("admin", "other"), "admin", "other"),
        Player("worker", world.worker, "worker"),
        Player("operator", operator, "operator"),
        Player("operator for acme", operator.acting_for("acme"), "operator", "acme"),
    ]
    return {player.name: player for player in players}
