"""How the queues stood over time, as charts take it: every step has a number, also where nothing
was sampled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from fairlane.core import ops
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.web.charts import Mark, Series

RANGES = {
    "1h": ("Last hour", timedelta(hours=1)),
    "6h": ("Last 6 hours", timedelta(hours=6)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
}
BEAT = 15  # seconds between two samples
LATE = 2  # steps that a sample may be
QUEUES = 6  # that have a colour of their own
COLOURS = ("q1", "q2", "q3", "q4", "q5", "q6")


@dataclass(frozen=True)
class Span:
    """A time up to now, in whole samples: the same question within 15 seconds is the same."""

    name: str
    since: datetime
    until: datetime

    @classmethod
    def of(cls, asked: str, now: datetime) -> "Span":
        name = asked if asked in RANGES else "1h"
        seconds = now.timestamp() // BEAT * BEAT
        until = datetime.fromtimestamp(seconds, UTC)
        return cls(name, until - RANGES[name][1], until)

    @property
    def title(self) -> str:
        return RANGES[self.name][0]


@dataclass(frozen=True)
class Steps:
    """Rows of fairlane.samples, or of tenants, on all steps of their time."""

    span: Span
    rows: Mapping[int, Record]
    count: int
    ticks: Sequence[str]

    @classmethod
    def of(cls, span: Span, rows: Sequence[Record], tz: Any) -> "Steps":
        width = rows[0]["seconds"] if rows else 30.0
        count = max(1, round((span.until - span.since).total_seconds() / width))
        found = {round((row["at"] - span.since).total_seconds() / width) - 1: row for row in rows}
        form = "%H:%M" if span.name in ("1h", "6h", "24h") else "%a %H:%M"
        ticks = [
            (span.since + timedelta(seconds=width * (at + 1))).astimezone(tz).strftime(form)
            for at in range(count)
        ]
        return cls(span, found, count, ticks)

    @property
    def is_empty(self) -> bool:
        return not self.rows

    def values(self, name: str, missing: float = 0.0) -> list[float]:
        """`missing` where nothing was sampled, or nothing happened. The sample of this moment may
        be on its way: until then the last one stands for it."""
        if self.is_empty:
            return [missing] * self.count
        last = max(self.rows)
        found = [
            self.rows[last if last < at <= last + LATE else at][name]
            if at in self.rows or last < at <= last + LATE
            else None
            for at in range(self.count)
        ]
        return [missing if value is None else round(float(value), 3) for value in found]

    def at(self, moment: datetime) -> int:
        share = (moment - self.span.since) / (self.span.until - self.span.since)
        return min(max(round(share * (self.count - 1)), 0), self.count - 1)


async def of_queue(connection: Connection, span: Span, tz: Any, queue: str | None = None) -> Steps:
    """One queue's, or all together."""
    rows = await send(connection, ops.samples(span.since, span.until, queue))
    return Steps.of(span, rows, tz)


async def of_tenant(connection: Connection, span: Span, tz: Any, tenant_id: Any) -> Steps:
    args = (tenant_id, span.since, span.until)
    call = Call("select * from fairlane.tenant_samples($1, $2, $3)", args)
    return Steps.of(span, await send(connection, call), tz)


async def depths(
    connection: Connection, span: Span, tz: Any, queues: Sequence[str]
) -> tuple[Sequence[str], list[Series]]:
    """What was due in each queue, to be stacked; what has no colour left goes into the last."""
    series: list[Series] = []
    ticks: Sequence[str] = ()
    for number, queue in enumerate(queues[:QUEUES]):
        steps = await of_queue(connection, span, tz, queue)
        if steps.is_empty:
            # On the steps of the others, or the areas would not lie on each other.
            steps = Steps(span, {}, len(ticks), ticks)
        ticks = ticks or steps.ticks
        series.append(Series(queue, steps.values("due"), COLOURS[number]))
    return ticks, [each for each in series if len(each.values) == len(ticks)]


VERSIONS = """
select version, min(started_at) as at from fairlane.workers
 where version <> '' group by version order by 2 desc limit 5
"""


async def deploys(connection: Connection, steps: Steps) -> list[Mark]:
    """When workers of another version first came; the first version ever is no change."""
    rows = await send(connection, Call(VERSIONS))
    return [
        Mark(steps.at(row["at"]), f"deploy {row['version']}"[:24])
        for row in rows[:-1]
        if row["at"] > steps.span.since
    ]
