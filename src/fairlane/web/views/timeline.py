"""A job's life in order: waits, attempts, pauses; phases; what happened when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from fairlane.web import charts
from fairlane.web.words import duration, gist

Row = Mapping[str, Any]

COLOURS = {
    "running": "running",
    "succeeded": "succeeded",
    "succeeded_with_errors": "succeeded",
    "canceled": "canceled",
}


@dataclass(frozen=True)
class Phase:
    name: str
    seconds: float | None
    state: str  # done, now, failed


def phases_of(job: Row, said: Sequence[Row], now: datetime) -> list[Phase]:
    """The phases of the attempt that runs, or ran last, in the order it named them."""
    if not said:
        return []
    last = max(row["attempt"] for row in said)
    named = sorted((row for row in said if row["attempt"] == last), key=lambda row: row["seq"])
    ends = [row["at"] for row in named[1:]]
    live = job["status"] == "running"
    final = now if live else (job["finished_at"] or now)
    phases = []
    for row, end in zip(named, [*ends, final], strict=True):
        is_last = row is named[-1]
        state = "done"
        if is_last and live:
            state = "now"
        elif is_last and job["status"] not in ("succeeded", "succeeded_with_errors"):
            state = "failed"
        phases.append(Phase(row["name"][:60], max((end - row["at"]).total_seconds(), 0), state))
    return phases


def timeline_of(job: Row, attempts: Sequence[Row], now: datetime, tz: Any) -> Markup:
    """Waits are thin and attempts are thick; each is as long as it took."""
    parts: list[tuple[str, datetime, datetime, str]] = []
    at: datetime = job["created_at"]
    for number, each in enumerate(attempts):
        start = max(each["started_at"], at)
        wait = "queued" if number == 0 else "backoff"
        if start > at:
            took = duration((start - at).total_seconds())
            parts.append(("queued" if number == 0 else "retrying", at, start, f"{wait} {took}"))
        end = max(each["finished_at"] or now, start)
        kind = COLOURS.get(each["outcome"], "attempt-failed")
        parts.append((kind, start, end, _said(each, duration((end - start).total_seconds()))))
        at = end
    if job["status"] in ("queued", "scheduled") and now > at:
        word = "queued" if job["status"] == "queued" else "waiting"
        kind = "retrying" if attempts else "queued"
        parts.append((kind, at, now, f"{word} {duration((now - at).total_seconds())}"))
        at = now
    begin = job["created_at"]
    whole = max((at - begin).total_seconds(), 0.001)
    shares = [
        (kind, (a - begin).total_seconds() / whole, (b - begin).total_seconds() / whole, text)
        for kind, a, b, text in parts
    ]
    last = "now" if job["finished_at"] is None else at.astimezone(tz).strftime("%H:%M:%S")
    said = "; ".join(text for *_, text in parts) or "nothing has happened yet"
    return charts.segments(
        f"Timeline: {said}", shares, begin.astimezone(tz).strftime("%H:%M:%S"), last
    )


def _said(attempt: Row, took: str) -> str:
    name = f"attempt {attempt['attempt']}"
    if attempt["outcome"] == "running":
        where = f" on {attempt['worker']}" if attempt["worker"] else ""
        return f"{name}, running {took}{where}"
    error = attempt["error"]
    kind = error.get("type") if isinstance(error, Mapping) else None
    return f"{name}, {kind or attempt['outcome'].replace('_', ' ')} after {took}"


def events_of(job: Row, attempts: Sequence[Row]) -> list[dict[str, Any]]:
    """What happened when, newest last."""
    found = [{"at": job["created_at"], "state": "queued", "text": "created", "more": _by(job)}]
    for each in attempts:
        name = f"attempt {each['attempt']}"
        worker = each["worker"] or ""
        found.append(
            {
                "at": each["started_at"],
                "state": "running",
                "text": f"{name} started",
                "more": worker,
            }
        )
        if each["finished_at"] is not None:
            state = COLOURS.get(each["outcome"], "failed")
            text = f"{name}: {each['outcome'].replace('_', ' ')}"
            found.append(
                {
                    "at": each["finished_at"],
                    "state": state,
                    "text": text,
                    "more": gist(each["error"]),
                }
            )
    if job["finished_at"] is not None and job["status"] in ("dead_letter", "canceled"):
        text = "dead letter" if job["status"] == "dead_letter" else "canceled"
        found.append({"at": job["finished_at"], "state": job["status"], "text": text, "more": ""})
    return found


def _by(job: Row) -> str:
    by = f"by {job['created_by']}" if job["created_by"] else ""
    return f"{job['source']} {by}".strip()
