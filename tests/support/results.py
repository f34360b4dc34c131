"""Lines of results as the harness writes them, with figures whose ratios are plain."""

import json
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    "commit": "0123456789ab",
    "changed": False,
    "cores": 2,
    "memory_gb": 8.0,
    "processor": "a processor",
    "kernel": "6.1",
    "python": "3.11.2",
    "postgresql": "18.1",
    "settings": {"fsync": "on"},
    "redis": "7.0.15",
    "packages": {"pgqueuer": "1.6.0"},
    "load": 0.1,
}


def line(scenario: str, system: str, nth: int, **told: Any) -> dict[str, Any]:
    return {"scenario": scenario, "system": system, "round": nth, "quick": False, **told}


def drains(rates: dict[str, list[float]], of: str = "drain") -> list[dict[str, Any]]:
    measure = f"{of.replace('-', ' ')} /s"
    return [
        line(of, system, nth, figures={measure: rate})
        for system, rounds in rates.items()
        for nth, rate in enumerate(rounds, start=1)
    ]


def write(path: Path, lines: list[dict[str, Any]], at: str = "2026-03-01T12:00:00+00:00") -> Path:
    told = [{"environment": ENVIRONMENT | {"at": at}}, *lines]
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in told))
    return path
