"""System programs that some tests need; where one is absent, the test says so and is skipped."""

import os
import shutil

import pytest


def needed(program: str, package: str) -> str:
    """The path of a program, or a skip; where FAIRLANE_TEST_ALL is set, a failure."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        word = f"needs {program}; install it with: apt install {package}"
        if os.environ.get("FAIRLANE_TEST_ALL"):
            pytest.fail(word)
        pytest.skip(word)
    return found
