"""The process behind isolation="process"."""

import subprocess
import sys


def test_a_process_whose_worker_was_killed_before_it_said_a_word_ends_quietly() -> None:
    """A worker that a poison job killed left a traceback of the process that it had just started:
    "Input data was truncated", which sent people looking for a fault in their payloads."""
    code = "from fairlane.executors.child import main; main()"
    command = [sys.executable, "-c", f"import os; os.open('/dev/null', 1); {code}"]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
