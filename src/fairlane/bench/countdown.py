"""Jobs that do nothing, and the moment that so many of them are done."""

import asyncio
from typing import Any

from fairlane.app import Fairlane
from fairlane.bench.world import KIND


class Countdown:
    def __init__(self, app: Fairlane, jobs: int) -> None:
        self._left = jobs
        self._over = asyncio.Event()

        @app.job(KIND)
        async def noop(**payload: Any) -> None:
            self._left -= 1
            if self._left == 0:
                self._over.set()

    def begin_again(self, jobs: int) -> None:
        self._left = jobs
        self._over.clear()

    async def over(self) -> None:
        await self._over.wait()
