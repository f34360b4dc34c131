"""A worker's own clock jumps by an hour: the database's clock decides, and the worker's patience
counts by one that does not jump."""

import time
from pathlib import Path

import pytest

from faults.claims import late
from faults.proxy import Proxy
from faults.scene import scene
from support.postgres import Server
from support.workers import fleet_of, until

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

APP = "faults.scene_tasks:app"
LEASE = 6.0
HOUR = 3600


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(HOUR, marks=pytest.mark.scene),
        pytest.param(-HOUR, marks=pytest.mark.scene_long),
    ],
)
def test_a_clock_that_jumps_neither_ends_a_lease_nor_keeps_it(
    server: Server, tmp_path: Path, wall_clock: str, step: int
) -> None:
    kind = f"clock_step_{'ahead' if step > 0 else 'back'}"
    offset = tmp_path / "offset"
    offset.write_text("+0")
    faked = {
        "LD_PRELOAD": wall_clock,
        "WALL_CLOCK_OFF_BY": str(offset),
        "FAIRLANE_LEASE_SECONDS": f"{LEASE:g}",
    }
    with (
        scene(kind) as played,
        Proxy(*server.target) as proxy,
        fleet_of(server.url(), tmp_path) as fleet,
    ):
        job = fleet.enqueue("beats", max_attempts=9)
        fleet.url = proxy.url(server.url())
        victim = fleet.worker("default=2", app=APP, ready=True, arguments=(), **faked)

        def beats(attempt: int) -> list[float]:
            words = (line.split() for line in fleet.runs("beats"))
            return [float(at) for _, n, at in words if int(n) == attempt]

        def is_off_by(seconds: float) -> bool:
            """As a job sees it that runs in the worker's own process."""
            fleet.until_status(fleet.enqueue("echo"), "succeeded")
            return abs(float(fleet.runs()[-1].split()[2]) - time.time() - seconds) < 60

        until(lambda: beats(1), "it runs")
        offset.write_text(f"{step:+d}")
        jumped = time.monotonic()
        until(lambda: is_off_by(step), "its clock has jumped")
        played.injected += 1
        # Longer than a lease: it must be renewed all the while, and the job be left alone.
        until(lambda: time.monotonic() - jumped > 2 * LEASE, "two leases pass")
        played.check("it keeps its job", beats(2))
        played.check("it beats on", time.monotonic() - beats(1)[-1] > 1)
        left = fleet.ask(
            "select extract(epoch from lease_expires_at - clock_timestamp())::float8"
            " from fairlane.workers where state = 'live'"
        )
        played.check("its lease is as long as ever", [left] if not 0 < left <= LEASE else [])

        fleet.url = server.url()
        fleet.worker("default=1", app=APP, FAIRLANE_LEASE_SECONDS=f"{LEASE:g}")
        darkened = fleet.ask("select clock_timestamp()")
        proxy.blackhole()
        offset.write_text("+0")  # and it jumps again, back to where it was
        played.injected += 1
        victim.until_said("stopping its jobs", within=LEASE + 5)
        until(lambda: beats(2), "it runs elsewhere", within=LEASE + 10)
        first, second = beats(1)[-1], beats(2)[0]
        played.check("never in two places", [first - second] if first >= second else [])
        played.check("elsewhere soon after the lease", late(fleet, job, darkened, LEASE + 2))
        (tmp_path / "open").touch()
        fleet.until_status(job, "succeeded")
        played.operations += 1
        fleet.assert_books_balance()
