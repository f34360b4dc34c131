"""The command line as a person calls it, on a database of its own."""

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from cli.calling import Answer, Call, Floor
from fairlane.cli.main import main


@pytest.fixture
def anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no settings from outside."""
    for name in ("FAIRLANE_DATABASE_URL", "DATABASE_URL", "FAIRLANE_HOME", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def own_logging() -> Iterator[None]:
    """A process of its own takes the root logger for itself, as it may. Here it would leave a
    stream behind that is closed with the test, and what other tests log later would go there."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.fixture
def call(
    anywhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Call `fairlane` with these words, whatever its database."""

    def call(*words: str, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with own_logging():
            status = main(words)
        out, err = capsys.readouterr()
        return Answer(status, out, err)

    return call


@pytest.fixture
def fairlane(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call `fairlane` on a fresh, migrated database."""
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", database)
    return call


@pytest.fixture
def floor(database: str) -> Iterator[Floor]:
    with psycopg.connect(database, autocommit=True) as conn:
        yield Floor(conn)


@pytest.fixture
def acme(floor: Floor) -> str:
    """A tenant on the plan pro, and a definition `a.task`."""
    floor.define("a.task")
    return floor.tenant("acme")
