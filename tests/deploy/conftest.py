"""Wheel and sdist as they would be released, and environments they are installed into."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.files import ROOT, environment, run, uv
from support.needing import lacking

Install = Callable[..., Path]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder)
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Installs the wheel with these extras into an environment that was empty."""
    made: dict[str, Path] = {}

    def installed(extras: str = "") -> Path:
        if extras not in made:
            made[extras] = _installed(wheel, extras, tmp_path_factory.mktemp("env"))
        return made[extras]

    return installed


def _installed(wheel: Path, extras: str, folder: Path) -> Path:
    found = uv()
    if found is None:
        lacking("needs uv to install a wheel; see: make install")
    subprocess.run(
        [found, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True
    )
    wanted = f"fairlane{extras and f'[{extras}]'} @ {wheel.as_uri()}"
    words: list[str | Path] = [
        found,
        "pip",
        "install",
        "--quiet",
        "--python",
        folder / "bin" / "python",
    ]
    words += ["--constraint", ROOT / "requirements.lock", wanted]
    # What `make install` has fetched is enough, where it is kept.
    done = subprocess.run([*words, "--offline"], capture_output=True, env=environment())
    if done.returncode != 0:
        done = subprocess.run(words, capture_output=True, env=environment())
    if done.returncode != 0:
        lacking(f"the wheel cannot be installed here: {done.stderr.decode().strip()}")
    return folder
