"""Generated calls by callers of every kind: nothing breaks, nothing of another's is shown."""

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from api.test_document import CHECKS, hurry, without_streams
from attacks.canaries import Canaries
from attacks.tally import Tally, tallied
from attacks.test_canaries import Scene, scene

__all__ = ["scene"]

PLAYERS = ("acme viewer", "other member", "other admin", "worker", "operator", "nobody")
FEW = int(os.environ.get("FAIRLANE_ATTACK_EXAMPLES", "1"))
MANY = int(os.environ.get("FAIRLANE_ATTACK_LONG_EXAMPLES", "100"))
STRAIGHT = settings(
    max_examples=FEW,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)

schema = schemathesis.openapi.from_dict(without_streams())


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    with tallied("generated calls") as found:
        yield found


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


@schema.parametrize()
@STRAIGHT
@pytest.mark.faults
def test_no_caller_breaks_the_server_or_is_shown_anothers(
    case: Any, scene: Scene, tally: Tally
) -> None:
    attack(case, scene, tally, PLAYERS)


@schema.include(path_regex="^/api/v1/(jobs|triggers|events|tokens|me)$").parametrize()
@STRAIGHT
def test_the_calls_of_every_day_stand_up_to_generated_ones(
    case: Any, scene: Scene, tally: Tally
) -> None:
    attack(case, scene, tally, ("other member",))


@schema.parametrize()
@settings(STRAIGHT, max_examples=MANY)
@pytest.mark.faults_long
def test_a_long_run_of_generated_calls(case: Any, scene: Scene, tally: Tally) -> None:
    attack(case, scene, tally, PLAYERS)


def test_the_database_was_sent_no_statement_that_it_could_not_read(scene: Scene) -> None:
    """Quotes in every parameter (S29): what a caller writes is never part of a statement."""
    words = ["'", '"', "\\", "';--", "$$", "%27", "1' or '1'='1", "\u2019", "{}", "$1", "E'\\x27'"]
    token = scene.token("other admin")
    with httpx2.Client(
        base_url=f"{scene.address}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=30
    ) as http:
        for word in words:
            for name in ("q", "correlation_id", "queue", "definition_key", "cursor", "status"):
                assert http.get("/jobs", params={name: word}).status_code in (200, 422)
            for path in ("jobs", "triggers", "events", "tokens", "operations"):
                answer = http.get(f"/{path}/{quote(word, safe='')}")
                assert answer.status_code in (404, 405, 422), answer.text
    assert "syntax error" not in scene.process.log.read_text()
