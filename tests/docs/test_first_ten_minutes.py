"""Somebody new, with an empty folder and an empty environment, does what README and start say."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.blocks import PROSE, ROOT, Block, blocks
from docs.running import Folder

# An install from the index, a PostgreSQL of one's own, and a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Newcomer(Folder):
    """Has what was typed, and nothing of ours: no database, no packages, no settings."""

    def __init__(self, path: Path, wheel: Path) -> None:
        programs = path / "environment"
        subprocess.run([sys.executable, "-m", "venv", str(programs)], check=True)
        super().__init__(path, None, programs / "bin")
        self.wheel = wheel

    def _python(self, block: Block) -> None:
        assert block.file, f"{block.where}: where does a reader put this?"

    def _install(self, block: Block, extras: str | None) -> None:
        wanted = f"{self.wheel}[{extras}]" if extras else str(self.wheel)
        self.call(block, f"pip install --quiet --disable-pip-version-check '{wanted}'", within=400)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """As anybody's: root's PostgreSQL runs as another user, who could not enter a test's own."""
    with tempfile.TemporaryDirectory(prefix="newcomer-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_word_for_word(page: str, wheel: Path, folder: Path) -> None:
    newcomer = Newcomer(folder, wheel)
    every = blocks(ROOT / page)
    shown = [block for block in every if not (block.reason or block.language in PROSE)]
    # A reader who begins reads the install before the file, or after it; never a use before both.
    assert any("pip install" in block.text for block in shown)
    first_use = next(i for i, b in enumerate(shown) if re.search(r"^(\$ )?fairlane", b.text, re.M))
    assert any("pip install" in block.text for block in shown[: first_use + 1])
    try:
        for block in shown:
            newcomer.run(block)
    finally:
        newcomer.close()
