"""Clients that ask for things, and write down what they were answered."""

from __future__ import annotations

import asyncio
import contextlib
import random

from faults.clients.base import Notes
from faults.clients.http import ByHttp
from faults.clients.library import ByLibrary
from faults.plan import Op
from faults.system import System


class Clients(ByLibrary, ByHttp):
    """One method an operation."""

    def __init__(self, system: System) -> None:
        Notes.__init__(self)
        ByLibrary.__init__(self, system.proxies["clients"].url(system.postgres.url()))
        ByHttp.__init__(self, system.http, system.members)

    async def __aenter__(self) -> Clients:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        with contextlib.suppress(Exception):  # its database is gone, or going
            async with asyncio.timeout(5):
                await self._app.close()

    async def do(self, op: Op) -> None:
        await getattr(self, f"_{op.kind}")(op, random.Random(op.pick))
