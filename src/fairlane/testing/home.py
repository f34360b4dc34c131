"""A folder for a server that lives as long as a run of tests, in memory where there is room."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it is ours alone
ROOM = 2**30  # bytes; a container often has 64 MB of it, which a server soon fills
PREFIX = "fairlane-test-"
OWNED = "owned"


@contextlib.contextmanager
def temporary_home() -> Iterator[Path]:
    """A folder that is gone after the block; that of a killed run goes when the next one starts."""
    parent = MEMORY if _has_room(MEMORY) else Path(tempfile.gettempdir())
    _clear_leftovers(parent)
    home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        # Another user runs the server when root runs the tests.
        home.chmod(0o755)
        with (home / "new").open("w") as file:
            # Nobody finds the file before it is locked; the lock goes with this process.
            fcntl.flock(file, fcntl.LOCK_EX)
            (home / "new").rename(home / OWNED)
            yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > ROOM


def _clear_leftovers(parent: Path) -> None:
    for owned in parent.glob(f"{PREFIX}*/{OWNED}"):
        with contextlib.suppress(OSError), owned.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(owned.parent, ignore_errors=True)
