"""Breaks a process of the product before it begins; it is on the path of such alone."""

import os

from faults.builds.mistakes import BUILDS

_build = next(each for each in BUILDS if each.name == os.environ["FAIRLANE_TEST_BROKEN"])
_patched = _build.patched()
_patched.__enter__()
