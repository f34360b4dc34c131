"""A pooler that is paused, or killed and started again, under load."""

import time
from pathlib import Path

import pytest

from faults.load import enqueuing
from faults.scene import scene
from support.pgbouncer import pooler as pooler_before
from support.postgres import Server
from support.workers import fleet_of, until

pytestmark = [pytest.mark.fault, pytest.mark.scene, pytest.mark.timeout(180)]

APP = "faults.scene_tasks:app"
PAUSED = 2.0  # seconds


def test_a_pooler_that_pauses_and_dies_under_load_loses_nothing(
    server: Server, tmp_path: Path
) -> None:
    with (
        scene("pgbouncer") as played,
        pooler_before(server.url(), tmp_path) as pooler,
        fleet_of(server.url(), tmp_path) as fleet,
    ):
        fleet.url = pooler.url
        worker = fleet.worker("default=4", app=APP)
        worker.until_said("polling")
        with enqueuing(pooler.url) as enqueuers:
            load = enqueuers.load
            for _ in range(2):
                enqueuers.goes_on()
                pooler.say("PAUSE")
                paused, done = time.monotonic(), len(load.acked)
                until(lambda since=paused: time.monotonic() - since > PAUSED, "it is paused")  # type: ignore[misc]
                played.check("it was a pause", len(load.acked) - done > 4)
                pooler.say("RESUME")
                played.injected += 1
                enqueuers.goes_on()
                pooler.kill()
                pooler.start()
                played.injected += 1
            enqueuers.goes_on()
            enqueuers.stop()
        played.operations += load.operations
        until(
            lambda: fleet.ask("select count(*) from fairlane.job") == 0,
            "the worker goes on by itself",
            within=60,
        )
        there = {row[0] for row in fleet.db.execute("select id from fairlane.jobs").fetchall()}
        played.check("every acknowledged job is there", load.acked - there)
        played.check("what was refused is not", set(load.refused) & there)
        ended = fleet.ask(
            "select count(*) from fairlane.jobs where status = 'succeeded' and attempt_count = 1"
        )
        played.check("and nearly all at the first attempt", ended < 0.9 * len(there))
        fleet.assert_books_balance()
