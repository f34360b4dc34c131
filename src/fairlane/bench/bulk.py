"""Enqueueing in bulk, against COPY of the same rows into the same table with its indexes."""

import time
from datetime import datetime
from typing import Any
from uuid import UUID

from fairlane.bench.line import Bar, Line
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.turns import Sides
from fairlane.bench.world import World, requests
from fairlane.core import calls
from fairlane.core.connect import send

BAR = Bar(0.30)
ROWS = 20_000
ROUNDS = 7
TENANTS = 10
COLUMNS = (
    "id, tenant_id, lane_id, definition_id, queue, status, priority, payload, scheduled_for, "
    "created_at, queued_at, max_attempts, source"
)


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    lines = []
    async with scratch.world() as world:
        await world.prepare(max_running=10)
        await world.add_tenants(TENANTS)
        for batch in (1_000, 10_000):
            say(f"bulk: {ROWS:,} rows, {batch:,} at a time, {ROUNDS} rounds")
            sides = Sides()
            await _round(world, batch)
            for _ in range(ROUNDS):
                sides.add(*await _round(world, batch))
            ours, theirs = sides.medians
            lines.append(
                Line(
                    benchmark="bulk",
                    case=f"enqueue_many, {batch:,} at a time",
                    unit="rows/s",
                    figure=ours,
                    against=theirs,
                    against_what="by COPY",
                    ratio=sides.ratio,
                    bar=BAR,
                )
            )
    return lines


async def _round(world: World, batch: int) -> tuple[float, float]:
    """Rows a second by enqueue_many and by COPY. What is copied is what was enqueued."""
    items = requests([f"t{n % TENANTS}" for n in range(batch)])
    start = time.perf_counter()
    for _ in range(ROWS // batch):
        await send(world.connection, calls.enqueue(items))
    enqueued = time.perf_counter() - start

    rows = await _rows(world)
    await _empty(world)
    start = time.perf_counter()
    for first in range(0, ROWS, batch):
        await world.connection.copy_records_to_table(
            "job",
            schema_name="fairlane",
            columns=COLUMNS.split(", "),
            records=rows[first : first + batch],
        )
    copied = time.perf_counter() - start
    await _empty(world)
    return ROWS / enqueued, ROWS / copied


async def _rows(world: World) -> list[tuple[UUID | str | int | datetime, ...]]:
    query = f"select {COLUMNS} from fairlane.job order by created_at, id"  # noqa: S608
    rows: list[Any] = await world.connection.fetch(query)
    if len(rows) != ROWS:
        raise RuntimeError(f"enqueued {len(rows)} rows, not {ROWS}")
    return [tuple(row) for row in rows]


async def _empty(world: World) -> None:
    await world.connection.execute("truncate fairlane.job, fairlane.arrival")
