"""A harness that has never found anything proves nothing: builds that are broken on purpose, each
of which a short run must catch."""

import asyncio

import pytest

from faults import summary
from faults.broken import BUILDS
from faults.checks import check
from faults.execute import execute
from faults.plan import Shape, planned

pytestmark = [pytest.mark.scene_long, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", list(BUILDS))
def test_a_broken_build_is_caught(name: str) -> None:
    build = BUILDS[name]
    shape = Shape(broken=name, workers=2, supervised=0, pooled=0, schedulers=1)
    run = planned(1, 30, list(build.faults), gap=6, rate=20, shape=shape)
    history = asyncio.run(execute(run))
    violated = {title.split()[0] for title, some in check(history).items() if some}
    caught = bool(violated & set(build.found_by))
    summary.tell(
        f"broken: {name}",
        injected=1,
        operations=len(history.calls),
        invariants=1,
        violations=0 if caught else 1,
        caught="yes" if caught else "no",
    )
    assert caught, f"{name}: found only {violated}"
