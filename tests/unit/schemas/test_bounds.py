"""Whatever the schema and however much is wrong, telling it takes little time and memory."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("nasty.py")

MEGABYTES = 100
SECONDS = 0.5
DRAWN = 40


def test_the_faults_of_the_largest_payloads_are_told_in_bounded_time_and_memory() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "0", str(DRAWN)], capture_output=True, text=True, check=True
    )

    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) > DRAWN
    assert sum(each.get("count", 0) > 0 for each in found) > DRAWN / 2
    for each in found:
        assert "ended" not in each, each
        assert each["megabytes"] < MEGABYTES, each
        assert each["telling"] < SECONDS, each
        assert each["count"] <= 51, each
