"""A line for each scene and attack, for whoever adds them up: what was done, what came of it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "FAIRLANE_FAULTS_SUMMARY"  # the file, if anybody adds up


def tell(
    kind: str, *, injected: int, operations: int, invariants: int, violations: int, **more: object
) -> None:
    _write(
        {
            "kind": kind,
            "injected": injected,
            "operations": operations,
            "invariants": invariants,
            "violations": violations,
            **more,
        }
    )


def tell_lacking(what: str, why: str) -> None:
    """A scene that this machine does not permit."""
    _write({"lacking": what, "why": why})


def tell_failed(what: str) -> None:
    _write({"failed": what})


@dataclass(frozen=True)
class Told:
    scenes: list[Mapping[str, Any]]
    failed: list[str]
    lacking: dict[str, str]  # what this machine does not permit, and why


def told(file: Path) -> Told:
    """What was written there."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return Told(
        [row for row in rows if "kind" in row],
        sorted({row["failed"] for row in rows if "failed" in row}),
        {row["lacking"]: row["why"] for row in rows if "lacking" in row},
    )


def _write(line: dict[str, Any]) -> None:
    if file := os.environ.get(VARIABLE):
        with Path(file).open("a") as lines:
            lines.write(json.dumps(line) + "\n")
