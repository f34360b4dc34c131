"""What a test cannot do without, beside programs: a skip that says so, or where all must run a
failure."""

import os
from typing import NoReturn

import pytest


def lacking(word: str) -> NoReturn:
    if os.environ.get("FAIRLANE_TEST_ALL"):
        pytest.fail(word)
    pytest.skip(word)
