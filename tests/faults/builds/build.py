"""A broken build as a value: what is wrong with it, how it is made, and which check must see it."""

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import asyncpg

from faults.interleavings.stage import Breaking, Stage, staged
from support.clock import Clock
from support.cluster import Cluster
from support.core import Core

HOOK = Path(__file__).parent / "hook"


@dataclass(frozen=True)
class Statement:
    """Something done to the database that is no change of a function."""

    sql: str

    async def apply(self, connection: "asyncpg.Connection[Any]") -> None:
        await connection.execute(self.sql)


@dataclass
class Database:
    url: str
    core: Core
    clock: Clock


@dataclass
class Scene:
    """Where a check is played: on the product as it is, or on a broken build of it."""

    cluster: Cluster
    template: str
    folder: Path
    sound: Stage
    build: "Build | None" = None
    operations: int = 0

    @property
    def breaks(self) -> "tuple[Breaking, ...]":
        return self.build.breaks if self.build else ()

    @property
    def environment(self) -> dict[str, str]:
        """For a process of its own: what is patched there is named by the environment."""
        tests = str(Path(__file__).parents[2])
        if self.build is None or not self.build.patches:
            return {"PYTHONPATH": tests}
        return {"PYTHONPATH": f"{HOOK}:{tests}", "FAIRLANE_TEST_BROKEN": self.build.name}

    @asynccontextmanager
    async def database(self) -> AsyncIterator[Database]:
        """A fresh one, broken as the build is."""
        with self.cluster.fresh(self.template) as url, Clock.of(url) as clock:
            conn: asyncpg.Connection[Any] = await asyncpg.connect(url)
            try:
                core = Core(conn)
                for each in self.breaks:
                    await each.apply(conn)
                yield Database(url, core, clock)
            finally:
                conn.terminate()

    @asynccontextmanager
    async def stage(self) -> AsyncIterator[Stage]:
        """For schedules. A broken build is judged by what a sound one makes of the same verbs."""
        if self.build is None:
            yield self.sound
        else:
            sound = self.sound
            async with staged(
                self.cluster, self.template, 3, self.breaks, sound.verbs, sound.serial
            ) as stage:
                yield stage


Check = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True)
class Build:
    """`breaks` change the database, `patches` the Python: "module:name" is replaced by a value."""

    name: str
    check: Check
    breaks: tuple[Breaking, ...] = ()
    patches: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def patched(self) -> Iterator[None]:
        with ExitStack() as stack:
            for place, value in self.patches.items():
                module, _, path = place.partition(":")
                *owners, name = path.split(".")
                owner: Any = importlib.import_module(module)
                for each in owners:
                    owner = getattr(owner, each)
                # A name that is gone is an error: break it in another way.
                stack.enter_context(mock.patch.object(owner, name, value))
            yield
