"""The data of a server: made whole or not at all, and of one version."""

import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from fairlane._binaries import Account
from fairlane.errors import EmbeddedError
from fairlane.parent import die_with_parent

FAST_SHUTDOWN = signal.SIGINT  # as PostgreSQL understands it

# The search path would hold the schema named after the role, and hide a name that
# lacks its schema until another role meets it.
FIRST_START = """\
create role fairlane login createdb createrole
alter role fairlane set search_path = public
grant pg_monitor to fairlane
create database fairlane owner fairlane
"""


def refuse_other_version(data: Path, ours: str) -> None:
    try:
        theirs = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    if theirs != ours.split(".")[0]:
        raise EmbeddedError(
            f"the data in {data} is of PostgreSQL {theirs} and the server is {ours}; set "
            f"FAIRLANE_PG_BINDIR to a PostgreSQL {theirs}, or dump with it and restore into a "
            "new FAIRLANE_HOME"
        )


def create(data: Path, programs: Path, who: Account, *, durable: bool) -> None:
    """Make the cluster with its role and database, whole or not at all."""
    try:
        pwd.getpwuid(who.uid)
    except KeyError:
        raise EmbeddedError(
            f"user id {who.uid} has no entry in the passwd file, which initdb asks for; run as a "
            "user the system knows, or set FAIRLANE_DATABASE_URL to use a server you have"
        ) from None
    for leftover in data.parent.glob("data.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix="data.", dir=data.parent))
    who.own(fresh)
    options = ["-U", "postgres", "--encoding=UTF8", "--locale=C"]
    options += ["--auth-local=trust", "--auth-host=scram-sha-256"]
    options += [] if durable else ["--no-sync"]
    _run([programs / "initdb", "-D", fresh, *options], who)
    _run(
        [programs / "postgres", "--single", "-D", fresh, "-c", "exit_on_error=on", "postgres"],
        who,
        FIRST_START,
    )
    fresh.rename(data)


def _run(command: list[str | Path], who: Account, text: str = "") -> None:
    done = subprocess.run(
        command,
        input=text.encode(),
        capture_output=True,
        check=False,
        preexec_fn=die_with_parent(FAST_SHUTDOWN),
        **who.popen(),
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace")
        raise EmbeddedError(f"the embedded PostgreSQL could not be made: {gist(said)}")


def gist(text: str) -> str:
    """The lines of PostgreSQL's output that say what went wrong, as one."""
    lines = [line for line in text.splitlines() if re.search(r"FATAL|ERROR|HINT|rror:", line)]
    chosen = lines or text.strip().splitlines()[-3:]
    return " ".join(line.strip() for line in chosen) or "it said nothing"
