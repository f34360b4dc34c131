"""Builds that are broken on purpose: a word of one function is changed in a scratch database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from support.clock import Clock
from support.cluster import Cluster
from support.core import Core
from support.sessions import Session, sessions


class NothingToBreak(LookupError):
    """The text is gone. Not an assertion: a check that fails by one has noticed something."""


@dataclass(frozen=True)
class Break:
    """In this function, this text becomes that one, wherever it stands."""

    function: str
    text: str
    becomes: str = ""

    async def apply(self, connection: "asyncpg.Connection[Any]") -> None:
        definition: str = await connection.fetchval(
            "select pg_get_functiondef(oid) from pg_proc "
            "where pronamespace = 'fairlane'::regnamespace and proname = $1",
            self.function,
        )
        if self.text not in definition:
            raise NothingToBreak(
                f"fairlane.{self.function} no longer says {self.text!r}; break it in another way"
            )
        await connection.execute(definition.replace(self.text, self.becomes))


@dataclass
class Stage:
    """A database with three sessions and a clock."""

    core: Core
    clock: Clock
    others: list[Session]


@asynccontextmanager
async def stage(
    cluster: Cluster, template: str, broken: Break | None = None
) -> AsyncIterator[Stage]:
    with cluster.fresh(template) as url, Clock.of(url) as clock:
        async with sessions(url, 3) as found:
            if broken:
                await broken.apply(found[0].conn)
            yield Stage(found[0], clock, found[1:])
