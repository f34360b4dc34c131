"""Generated calls by callers of every kind: nothing breaks, nothing of another's is shown."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from attacks.fuzzing import EVERY_DAY, PLAYERS, STRAIGHT, attack
from attacks.tally import Tally, tallied
from attacks.test_canaries import Scene, scene

__all__ = ["scene"]


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    with tallied("generated calls") as found:
        yield found


@EVERY_DAY.parametrize()
@STRAIGHT
@pytest.mark.scene
def test_no_caller_breaks_the_server_or_is_shown_anothers(
    case: Any, scene: Scene, tally: Tally
) -> None:
    attack(case, scene, tally, PLAYERS)


@EVERY_DAY.parametrize()
@STRAIGHT
def test_the_calls_of_every_day_stand_up_to_generated_ones(
    case: Any, scene: Scene, tally: Tally
) -> None:
    attack(case, scene, tally, ("other member",))


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
