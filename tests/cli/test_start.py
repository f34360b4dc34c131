"""The command line starts quickly: a call pays for what it does and for nothing else."""

import subprocess
import sys

import click
import pytest

from fairlane.cli.main import COMMANDS, cli
from fairlane.cli.summaries import SUMMARIES

# Each costs more to import than the rest of `fairlane --help` together.
HEAVY = {"aiohttp", "asyncio", "asyncpg", "fastapi", "jinja2", "jsonschema_rs", "msgspec"}
HEAVY |= {"prometheus_client", "uvicorn", "uvloop", "yaml", "importlib.metadata", "ssl"}
SHOW = "import sys; from fairlane.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("--version", set[str]()),
        ("--help", set[str]()),
        ("worker --help", set[str]()),
        ("migrate --help", {"asyncio", "ssl"}),
        ("server --help", {"asyncio", "ssl"}),
    ],
)
def test_a_call_that_only_tells_imports_nothing_heavy(words: str, allowed: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW, *words.split()], check=True, capture_output=True, text=True
    )
    imported = set(done.stdout.splitlines()[-1].split())
    assert "fairlane.cli.main" in imported
    assert imported & HEAVY <= allowed


def test_what_help_says_of_each_command_is_what_the_command_says() -> None:
    context = click.Context(cli)
    told = {name: cli.get_command(context, name) for name in COMMANDS}
    assert {
        name: command.get_short_help_str(200) for name, command in told.items() if command
    } == SUMMARIES
