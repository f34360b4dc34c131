"""System programs that some tests need; where one is absent, the test says so and is skipped."""

import os
import shutil

from support.needing import lacking


def path_of(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def needed(program: str, package: str) -> str:
    """The path of a program, or a skip; where FAIRLANE_TEST_ALL is set, a failure."""
    found = path_of(program)
    if found is None:
        lacking(f"needs {program}; install it with: apt install {package}")
    return found
