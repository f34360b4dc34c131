"""Would it be noticed? Each check passes on the product as it is, and fails on a broken build.

A check that has never failed proves nothing: these are the mistakes that others have made in
systems like this one, and each is caught.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from faults import summary
from faults.builds.build import Build, Scene
from faults.builds.mistakes import BUILDS
from faults.interleavings.stage import Stage, staged
from support.cluster import Cluster

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
async def sound(cluster: Cluster, template: str) -> AsyncIterator[Stage]:
    async with staged(cluster, template, sessions=3) as found:
        yield found


@pytest.mark.parametrize("build", [pytest.param(each, id=each.name) for each in BUILDS])
async def test_a_broken_build_is_noticed(
    build: Build, cluster: Cluster, template: str, sound: Stage, tmp_path: Path
) -> None:
    good = Scene(cluster, template, tmp_path / "sound", sound)
    bad = Scene(cluster, template, tmp_path / "broken", sound, build)
    for scene in (good, bad):
        scene.folder.mkdir()

    await build.check(good)
    caught = False
    try:
        with build.patched():
            await build.check(bad)
    except AssertionError:
        caught = True
    finally:
        summary.tell(
            f"broken: {build.name}",
            injected=1,
            operations=good.operations + bad.operations,
            invariants=1,
            violations=0 if caught else 1,
            caught="yes" if caught else "no",
        )
    assert caught, f"nobody notices that {build.name}"
