"""The tasks that the worker processes of a benchmark know."""

import asyncio
from typing import Any

from fairlane.app import Fairlane
from fairlane.bench.world import KIND

app = Fairlane()


@app.job(KIND)
async def noop(**payload: Any) -> None: ...


@app.job("hold", timeout=3600)
async def hold() -> None:
    """Runs until its worker is gone."""
    await asyncio.Event().wait()
