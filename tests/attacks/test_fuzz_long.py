"""Generated calls, many of each. In a file of its own: to collect it alone takes ten seconds."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from attacks.fuzzing import PLAYERS, STRAIGHT, attack, schema
from attacks.tally import Tally, tallied
from attacks.test_canaries import Scene, scene

__all__ = ["scene"]

MANY = int(os.environ.get("FAIRLANE_ATTACK_LONG_EXAMPLES", "100"))


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    with tallied("generated calls, many") as found:
        yield found


@schema.parametrize()
@settings(STRAIGHT, max_examples=MANY)
@pytest.mark.scene_long
def test_a_long_run_of_generated_calls(case: Any, scene: Scene, tally: Tally) -> None:
    attack(case, scene, tally, PLAYERS)
