"""A log line for each call: what was asked, what was answered, and how long that took.

What succeeds and is asked thousands of times a second, or by a probe, is told only at level debug:
an enqueue should not pay a tenth of its time for being written down.
"""

import logging
import re
import time

from starlette.types import Scope

log = logging.getLogger("fairlane.requests")

OFTEN = re.compile(
    r"POST /api/v1/(?:jobs(?:/batch)?|events|worker/.*)|GET /(?:healthz|readyz|metrics)"
)


def tell(scope: Scope, status: int | None, started: float) -> None:
    """`status`: None where nobody was answered. A query may hold anything, and is not told."""
    level = _level(scope, status)
    if not log.isEnabledFor(level):
        return
    taken = time.perf_counter() - started
    asked = {"method": scope["method"], "path": scope["path"], "status": status}
    log.log(
        level,
        "%s %s: %s",
        scope["method"],
        scope["path"],
        "no answer" if status is None else status,
        extra={"fairlane_request": {**asked, "duration": round(taken, 6)}},
    )


def _level(scope: Scope, status: int | None) -> int:
    if status is None or status >= 500:
        return logging.WARNING
    if status < 400 and OFTEN.fullmatch(f"{scope['method']} {scope['path']}"):
        return logging.DEBUG
    return logging.INFO
