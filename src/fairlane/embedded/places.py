"""Where the files of a home's server are, and its sockets."""

import contextlib
import fcntl
import hashlib
import logging
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairlane import _binaries
from fairlane._binaries import Account
from fairlane.errors import EmbeddedError

log = logging.getLogger(__name__)


def folders(home: Path) -> tuple[Path, Path]:
    """Where the server's files may be: in the home, or where root moved them."""
    home = home.absolute()
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return home / "pg", _binaries.SHARED / name


def settle(home: Path) -> tuple[Path, Account]:
    """Choose the folder, make it, and say who owns what is in it."""
    inside, shared = folders(home)
    folder = next((each for each in (inside, shared) if (each / "data").exists()), inside)
    who = _binaries.account(folder / "data")
    home.mkdir(mode=0o755, parents=True, exist_ok=True)
    if folder == inside and not who.may("-x", home):
        log.warning("user %s cannot enter %s; its data goes to %s", who.name, home, shared)
        folder = shared
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        who.own(folder)
    return folder, who


def socket_folder(folder: Path, who: Account) -> Path:
    """The folder itself; one in the system's temporary folder where its name cannot serve.

    A socket's path holds about a hundred bytes, and clients read a comma as a list of hosts.
    """
    if len(os.fsencode(folder)) <= 85 and re.fullmatch(r"[\w/. +@~=-]+", str(folder)):
        return folder
    name = f"fairlane-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    temporary = Path(tempfile.gettempdir())
    if len(os.fsencode(temporary)) > 60 or not who.may("-x", temporary):
        temporary = Path("/tmp")  # noqa: S108 - the folder made in it is ours alone
    sockets = temporary / name
    try:
        sockets.mkdir(mode=0o700)
        who.own(sockets)
    except FileExistsError:
        found = sockets.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != who.uid or found.st_mode & 0o077:
            raise EmbeddedError(
                f"{sockets} is not a private folder of user {who.name}; remove it"
            ) from None
    return sockets


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One starter at a time; the lock goes with the process that holds it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
