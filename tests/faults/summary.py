"""A line for each scene, for whoever adds them up: what was done, and what came of it."""

import json
import os
from pathlib import Path

VARIABLE = "FAIRLANE_FAULTS_SUMMARY"


def tell(
    kind: str, *, injected: int, operations: int, invariants: int, violations: int, **more: object
) -> None:
    """Write the line to the file that the environment names, if it names one."""
    if not (file := os.environ.get(VARIABLE)):
        return
    line = {
        "kind": kind,
        "injected": injected,
        "operations": operations,
        "invariants": invariants,
        "violations": violations,
        **more,
    }
    with Path(file).open("a") as lines:
        lines.write(json.dumps(line) + "\n")
