"""worker and bench hand over what they were told, and pass on the status."""

from typing import Any

import pytest

from cli.calling import Call


def test_worker_hands_over_what_it_was_told(
    fairlane: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    def run(*given: Any) -> int:
        told.append(given)
        return 0

    monkeypatch.setattr("fairlane.worker.main.run", run)
    monkeypatch.setattr("fairlane.observe.logs.log_to_stderr", lambda _: None)
    monkeypatch.setenv("FAIRLANE_LEASE_SECONDS", "45")

    queues = ("--queue", "critical=4", "--queue", "default=8")
    assert fairlane("worker", *queues, "--processes", "3", "--app", "shop:app").status == 0
    assert fairlane("worker").status == 0

    app_path, slots, processes, settings = told[0]
    assert (app_path, slots, processes) == ("shop:app", {"critical": 4, "default": 8}, 3)
    assert settings.lease_seconds == 45
    assert told[1][:3] == (None, {}, 1)


def test_bench_hands_over_what_it_was_told(
    fairlane: Call, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    def run(*given: Any, **more: Any) -> int:
        told.append((given, more))
        return 1

    monkeypatch.setattr("fairlane.bench.run", run)

    assert fairlane("bench", "drain", "--quick", "--json").status == 1
    assert told == [((["drain"], database, True), {"quick": True})]
