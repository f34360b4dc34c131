"""The witness B: jobs write down, themselves, that they begin and end."""

import json
import os
import sys
import time
from pathlib import Path

VARIABLE = "FAULTS_BODIES"


def note(what: str, job: str, attempt: int, said: str = "") -> None:
    """One write of one short line to a file opened for appending: no other can tear it apart."""
    line = {
        "what": what,
        "job": job,
        "attempt": attempt,
        "pid": os.getpid(),
        "ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        "said": said,
    }
    data = (json.dumps(line) + "\n").encode()
    descriptor = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def command() -> None:
    """A program of its own: `python -S -E bodies.py`, as an executor runs it."""
    job, attempt = os.environ["FAIRLANE_JOB_ID"], int(os.environ["FAIRLANE_ATTEMPT"])
    note("start", job, attempt)
    time.sleep(float(sys.argv[1]))
    note("end", job, attempt, "command")


PATH = Path(__file__)

if __name__ == "__main__":
    command()
