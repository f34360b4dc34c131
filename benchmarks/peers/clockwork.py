"""What every side measures, told the same way."""

import json
import time
from statistics import median, quantiles

STARTS = 200
PAYLOAD = {"report_id": 123456, "format": "pdf", "folder": "/invoices/2026/q1", "to": "a@b.example"}


def tell(bulk: float, drain: float, cpu: float, jobs: int, waits: list[float]) -> None:
    """Seconds in, one line of JSON out."""
    print(
        json.dumps(
            {
                "bulk /s": jobs / bulk,
                "drain /s": jobs / drain,
                "worker µs/job": cpu / jobs * 1e6,
                "start p50 ms": median(waits) * 1000,
                "start p99 ms": quantiles(waits, n=100)[98] * 1000,
            }
        )
    )


class Stopwatch:
    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def seconds(self) -> tuple[float, float]:
        return time.perf_counter() - self.wall, time.process_time() - self.cpu
