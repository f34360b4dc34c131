"""A directory of the command's own, gone when the command is. The guard removes it: it outlives the
worker."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def private_directory() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="fairlane-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if Path(folder).exists():  # it took its own rights to some of it away
            for root, _, _ in os.walk(folder):
                with contextlib.suppress(OSError):
                    Path(root).chmod(0o700)
            shutil.rmtree(folder, ignore_errors=True)
