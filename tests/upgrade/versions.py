"""Versions of before, taken out of the history."""

import subprocess
from pathlib import Path

from support.needing import lacking

ROOT = Path(__file__).parents[2]

# By the newest migration that they know. A release adds itself: see docs/releasing.md.
VERSIONS = {
    "0001": "fc68fa3",  # 0.1.0
    "0005": "e83c758",
    "0016": "572961c",
}
BEFORE = "0016"  # the version before; the others are tried where there is time


def source_of(commit: str, folder: Path) -> Path:
    """The `src` of that commit, unpacked into a folder of its own."""
    known = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True
    )
    if known.returncode != 0:
        lacking(f"needs commit {commit}: clone with the whole history (git fetch --unshallow)")
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "src"], check=True, capture_output=True
    )
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"
