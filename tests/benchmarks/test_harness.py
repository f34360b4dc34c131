"""The harness measures Fairlane and the floor with what is installed, and no peers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.cluster import Cluster

ROOT = Path(__file__).parents[2]


def harness(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.peers", "ours", "--quick", *words]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


@pytest.mark.slow
def test_a_drain_of_fairlane_and_of_the_floor_is_measured(cluster: Cluster, tmp_path: Path) -> None:
    to = tmp_path / "results.jsonl"
    choice = ("--scenarios", "drain,work,cost", "--systems", "fairlane,floor")
    done = harness(*choice, "--url", cluster.url, "--to", str(to))

    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in to.read_text().splitlines()]
    assert lines[0]["environment"]["postgresql"]
    measured = {(line["scenario"], line["system"]): line["figures"] for line in lines[1:]}
    for system in ("fairlane", "floor"):
        assert measured["drain", system]["drain /s"] > 0
        assert measured["work", system]["work /s"] > 0
        assert measured["cost", system]["WAL B/job"] > 100
    assert "drain, one process, of the raw floor" in done.stdout


def test_an_unknown_scenario_is_named_with_those_there_are() -> None:
    refused = harness("--scenarios", "drian")

    assert refused.returncode == 2
    assert '"drian" is unknown; there are: enqueue, drain, drain-2' in refused.stderr


def test_a_scenario_that_a_system_cannot_do_says_who_can() -> None:
    refused = harness("--scenarios", "tenants", "--systems", "pgqueuer")

    assert refused.returncode == 2
    said = 'scenario "tenants" has none of these systems; it is for: fairlane'
    assert said in " ".join(refused.stderr.split())
