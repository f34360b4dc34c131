"""The code of docs/testing.md runs, as a project of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.cluster import Cluster

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def blocks() -> dict[str, str]:
    """Each block of code by the file that its first line names."""
    found = re.findall(r"^```python\n(# (\S+)\n.*?)^```$", PAGE.read_text(), re.M | re.S)
    return {name: code for code, name in found}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, code in blocks().items():
        (tmp_path / name).write_text(code)
    return tmp_path


def test_every_test_of_the_page_passes(project: Path, cluster: Cluster) -> None:
    every = PAGE.read_text().count("```python\n")
    tests = sum(
        code.count("\ndef test_") + code.count("async def test_") for code in blocks().values()
    )
    assert len(blocks()) == every == 5

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "anyio"],
        cwd=project,
        env=os.environ
        | {
            "FAIRLANE_TEST_DATABASE_URL": cluster.url,
            "PYTHONPATH": str(project),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests} passed" in done.stdout
