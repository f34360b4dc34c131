"""A plugin of pytest's: which scenes failed, and which this machine does not permit."""

import pytest

from faults import summary


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # Heard twice where tests run side by side; told is told.
    if report.skipped and isinstance(report.longrepr, tuple):
        summary.tell_lacking(_name(report), report.longrepr[2].removeprefix("Skipped: "))
    elif report.failed:
        summary.tell_failed(report.nodeid)


def _name(report: pytest.TestReport) -> str:
    return report.nodeid.rpartition("/")[2]
