"""The files of `deploy/` and the programs that look at them."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import yaml

from fairlane.cli.main import cli
from support.needing import lacking
from support.workers import until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "fairlane"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def checker(name: str) -> str:
    """The path of a program that `make checkers` installs."""
    place = ROOT / ".tools" / "checks" / "bin" / name
    if not place.exists():
        lacking(f"needs {name}; install it with: make checkers")
    return str(place)


def run(*words: str | Path) -> str:
    """What it printed; a test fails with all of it if it failed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def unit(path: Path) -> dict[str, list[str]]:
    """Every key of a unit with its values."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def chart(*words: str) -> list[dict[str, Any]]:
    """What helm makes of the chart."""
    text = run(checker("helm"), "template", "shop", CHART, "--namespace", "jobs", *words)
    return [document for document in yaml.safe_load_all(text) if document]


def parsed(words: list[str]) -> click.Context:
    """A command line as the real command reads it; it does not run."""
    name, command, rest = cli.resolve_command(click.Context(cli), words)
    assert name is not None
    assert command is not None
    return command.make_context(name, rest)


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def environment() -> dict[str, str]:
    """That of a process of ours, without what this run has of its own."""
    return {k: v for k, v in os.environ.items() if not k.startswith("FAIRLANE_")}


def uv() -> str | None:
    own = ROOT / ".tools" / "bin" / "uv"
    return str(own) if own.exists() else shutil.which("uv")


@contextmanager
def running(
    program: Path, folder: Path, *words: str, says: str, prefix: Sequence[str] = (), **more: str
) -> Iterator[str]:
    """A process until the block ends, when it is asked to stop; what it said to begin with."""
    log = folder / f"{words[0]}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*prefix, program, *words],
            cwd=folder,
            env={**environment(), **more},
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: says in log.read_text() or process.poll() is not None, says, within=60)
        assert process.poll() is None, log.read_text()
        yield log.read_text()
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
