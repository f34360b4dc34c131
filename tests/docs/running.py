"""Runs the blocks of one page in order: one folder, one database, one namespace."""

import ast
import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
import types
from configparser import ConfigParser
from dataclasses import replace
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import yaml

from docs.background import Background
from docs.blocks import Block
from fairlane import Fairlane, config
from fairlane.definitions.shape import WRITTEN
from fairlane.testing.drain import drain
from support.ports import free_port

FIELDS = set(WRITTEN)
PROGRAMS = Path(sys.executable).parent
RUNS_ON = re.compile(r"fairlane (?:up|server|worker|scheduler)\b|uvicorn\b")


class Folder:
    """Where a page's blocks run, as a reader's terminal would be: in one folder, with the
    programs on PATH and the database in the environment."""

    def __init__(self, path: Path, database: str | None, programs: Path = PROGRAMS) -> None:
        self.path = path
        self.database = database
        # A page says 8080 for Fairlane and 8000 for an application; here others may have them.
        self.ports = {"8080": free_port(), "8000": free_port()}
        self.names: dict[str, Any] = {"__name__": "page", "drain": self._drain}
        self.modules: list[str] = []
        self.loop = asyncio.Runner()
        self.background = Background(self)
        ours = ("FAIRLANE_", "PYTEST_", "PYTHON", "VIRTUAL_ENV", "DATABASE_URL")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment = {
            **kept,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "COLUMNS": "200",
        }
        if database is not None:
            self.environment |= {
                "PYTHONPATH": str(path),
                "FAIRLANE_DATABASE_URL": database,
                "DATABASE_URL": database,
                "FAIRLANE_TEST_DATABASE_URL": database,
                "FAIRLANE_SECRET_KEY": "a key of this page's own",
            }

    def finish(self, last: Block) -> None:
        """The tests that the page has shown pass, with all of its files there."""
        if tests := sorted(self.path.glob("test_*.py")):
            words = "python -m pytest -q -W error -p no:cacheprovider -p anyio"
            self.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            self.call(last, f"{words} {' '.join(test.name for test in tests)}")

    def close(self) -> None:
        self.background.stop()
        self.loop.run(self._let_go())
        self.loop.close()
        for name in self.modules:  # another page's file of that name is another file
            sys.modules.pop(name, None)

    def run(self, block: Block) -> None:
        if word := re.fullmatch(r"for ([A-Z]+): (.*?)(?: → (\S+))?", block.directive):
            value = _at(self.call(block, word[2]).strip(), word[3])
            block = replace(block, text=re.sub(rf"\b{word[1]}\b", value, block.text))
        if block.file:
            target = self.path / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
        getattr(self, f"_{block.language}")(block)

    async def _drain(self, app: Fairlane) -> None:
        """For hidden blocks: run all that can run now."""
        await drain(str(self.database), app, None, 30)

    async def _let_go(self) -> None:
        """What a page leaves open, as a program does at its end."""
        for value in {id(value): value for value in self.names.values()}.values():
            if isinstance(value, (asyncpg.Connection, Fairlane)):
                await value.close()

    # Languages -------------------------------------------------------------

    def _python(self, block: Block) -> None:
        if block.file and Path(block.file).name.startswith(("test_", "conftest")):
            return  # they run when the page has shown all of them
        if block.file and f"python {block.file}" in block.page.read_text():
            return  # the page runs it itself
        code = compile(
            block.text, block.where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
        names = self.names
        if block.file:
            # Other blocks import it by its name, as they would from a file.
            module = types.ModuleType(block.file.removesuffix(".py").replace("/", "."))
            module.__file__ = str(self.path / block.file)
            sys.modules[module.__name__] = module
            self.modules.append(module.__name__)
            names = module.__dict__
        if code.co_flags & inspect.CO_COROUTINE:
            self.loop.run(_awaited(code, names))
        else:
            exec(code, names)
        self.names.update({k: v for k, v in names.items() if not k.startswith("__")})

    def _console(self, block: Block) -> None:
        """Lines after `$` are commands, others what they print; without any `$` all are."""
        lines = block.text.splitlines()
        if not any(line.startswith("$ ") for line in lines):
            for command in _whole(lines):
                self._command(block, command, None)
            return
        command, shown = "", list[str]()
        for line in [*lines, "$ "]:
            if not line.startswith("$ "):
                shown.append(line)
                continue
            if command:
                self._command(block, command, shown)
            command, shown = line.removeprefix("$ "), []

    def _sh(self, block: Block) -> None:
        # Commands report on descriptor 3.
        self.call(block, f"set -euo pipefail\nexec 3>report\n{self._local(block.text)}")

    def _command(self, block: Block, command: str, shown: list[str] | None) -> None:
        command = self._local(command)
        if not command or command.startswith("#"):
            return
        if word := re.match(r"export (\w+)=(\S+)$", command):
            self.environment[word[1]] = word[2]
            return
        if word := re.match(r"pip install '?fairlane(?:\[([\w,]+)\])?'?$", command):
            self._install(block, word[1])
            return
        if RUNS_ON.match(command):
            self.background.start(command, block.where)
            return
        said = self.call(block, command)
        if shown is not None and any(line.strip() for line in shown):
            wanted = "\n".join(shown)
            assert _fits(wanted, said), f"{block.where}: {command} said\n{said}\nnot\n{wanted}"

    def _install(self, block: Block, extras: str | None) -> None:
        """It is installed here; what is asked for must be there to be had."""
        known = metadata("fairlane").get_all("Provides-Extra") or []
        assert set((extras or "all").split(",")) <= set(known), block.where

    def _local(self, text: str) -> str:
        return re.sub(
            r"(localhost:|127\.0\.0\.1:|--port )(8080|8000)\b",
            lambda match: f"{match[1]}{self.ports[match[2]]}",
            text,
        )

    def call(self, block: Block, command: str, within: float = 60) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        said = done.stdout + done.stderr
        # What a page shows to go wrong says so by showing the error.
        wrong = "fairlane: " in block.text and done.returncode in (1, 2)
        # The tests' own server has fsync off, and doctor says so.
        wrong |= command.startswith("fairlane doctor") and "fsync is off" in said
        assert done.returncode == 0 or wrong, (
            f"{block.where}: {command}\n{said}{self.background.said()}"
        )
        return said

    def _sql(self, block: Block) -> None:
        """Run and committed; or `rolled back`, which may name what must be there before."""
        word, _, before = block.directive.partition(":")
        with psycopg.connect(str(self.database)) as connection:
            if before:
                connection.execute(before.strip())
            connection.execute(block.text)
            if word == "rolled back":
                connection.rollback()

    def _yaml(self, block: Block) -> None:
        found = yaml.safe_load(block.text)
        if isinstance(found, dict):
            self._held_against_our_own_words(block, found)

    def _ini(self, block: Block) -> None:
        ConfigParser().read_string(block.text)

    def _json(self, block: Block) -> None:
        json.loads(block.text)

    def _toml(self, block: Block) -> None:
        found = tomllib.loads(block.text)
        if block.file == config.FILE:
            config.load({}, self.path)
        else:
            self._held_against_our_own_words(block, found)

    def _held_against_our_own_words(self, block: Block, found: dict[str, Any]) -> None:
        """Definitions, whole or some fields of one, are ones that could be applied."""
        if found.keys() <= FIELDS:
            found = {"definitions": [{"key": "of.the.page", **found}]}
        if "definitions" in found:
            (self.path / "of-the-page.json").write_text(json.dumps(found))
            self.call(block, "fairlane definitions apply of-the-page.json --dry-run")


async def _awaited(code: types.CodeType, names: dict[str, Any]) -> None:
    await eval(code, names)


def _at(said: str, path: str | None) -> str:
    """What a command printed, or of its JSON what is at `items.0.id`."""
    if path is None:
        return said
    found = json.loads(said)
    for step in path.split("."):
        found = found[int(step) if step.isdigit() else step]
    return str(found)


def _whole(lines: list[str]) -> list[str]:
    """Commands that go on after a backslash, as one."""
    return [each.strip() for each in "\n".join(lines).replace("\\\n", " ").split("\n")]


def _fits(wanted: str, said: str) -> bool:
    """Whether it says what is shown; … stands for anything within a line, alone for lines."""
    escaped = re.escape(wanted.strip())
    pattern = re.sub(r"\n…(?=\n|$)", r"(?:\\n.*)*", escaped.replace("\\\n", "\n"))
    pattern = re.sub(r"…|\\\.\\\.\\\.", ".*?", pattern)
    pattern = re.sub(r"(?:\\ )+", r"[ ]+", pattern)
    return re.search(rf"(?:^|\n){pattern}\s*(?:\n|$)", said) is not None
