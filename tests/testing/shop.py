"""Tasks that a process of its own can find."""

import os

from fairlane import Fairlane

app = Fairlane()


@app.job("pid", isolation="process")
def pid() -> int:
    return os.getpid()
