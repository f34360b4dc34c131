"""A generated call, made by callers of every kind."""

import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings

from api.test_document import CHECKS, hurry, without_streams
from attacks.canaries import Canaries
from attacks.tally import Tally
from attacks.test_canaries import Scene

PLAYERS = ("acme viewer", "other member", "other admin", "worker", "operator", "nobody")
FEW = int(os.environ.get("FAIRLANE_ATTACK_EXAMPLES", "1"))
STRAIGHT = settings(
    max_examples=FEW,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)

schema = schemathesis.openapi.from_dict(without_streams())
EVERY_DAY = schema.include(path_regex="^/api/v1/(jobs|triggers|events|tokens|me)$")


def headers_of(scene: Scene, player: str, of_tenant: bool) -> dict[str, str]:
    if player == "nobody":
        return {}
    headers = {"Authorization": f"Bearer {scene.token(player)}"}
    if player == "operator" and of_tenant:
        headers["X-Fairlane-Tenant"] = "other"
    return headers


def attack(case: Any, scene: Scene, tally: Tally, players: tuple[str, ...]) -> None:
    hurry(case)
    canary: Canaries = scene.canary
    for player in players:
        of_tenant = bool(case.operation.definition.raw.get("x-fairlane-tenant"))
        headers = headers_of(scene, player, of_tenant)
        response = case.call(base_url=scene.address, headers=headers)
        tally.injected += 1
        tally.operations += 1
        case.validate_response(response, checks=CHECKS)
        # Of acme's own, and of who sees all tenants or works for all, they are to be seen.
        if player.startswith("other") or player == "nobody":
            shown = canary.found_in(response.text)
            tally.hold(not shown, f"{player} is shown {shown} by {case.operation.label}")
        tally.hold(response.status_code < 500, f"{player}, {case.operation.label}")
