"""I14: schedules and events make each job once, and miss none."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from faults.checks.base import Violation
from faults.history import Change, History

LATE = 5.0  # seconds before the end in which a tick may not have been made yet


def each_tick_is_made_once(history: History) -> Iterator[Violation]:
    """Times of a schedule: no doubles; and, as its policy has it, none missing."""
    triggers = {c.row["id"]: c for c in history.changes if c.table == "trigger"}
    first: dict[str | None, Change] = {}
    for change in history.changes:
        if change.table == "trigger" and change.what == "insert":
            first[change.row["id"]] = change
    made: dict[str | None, list[Change]] = defaultdict(list)
    for change in history.changes:
        if change.table == "firing" and change.what == "insert":
            made[change.row["trigger_id"]].append(change)
    jobs: Counter[str | None] = Counter()
    for trigger, firings in made.items():
        times = Counter(change.row["scheduled_for"] for change in firings)
        for tick, count in times.items():
            if count > 1:
                twice = [c for c in firings if c.row["scheduled_for"] == tick]
                yield Violation(f"{tick} of trigger {trigger} was made twice", tuple(twice))
        jobs.update(c.row["job_id"] for c in firings if c.row["job_id"])
    for job, count in jobs.items():
        if count > 1:
            yield Violation(f"job {job} stands for {count} ticks", ())
    end = (history.final.drained or history.ended) - LATE
    for trigger, change in first.items():
        if triggers[trigger].row["cron_expr"] != "* * * * *":
            continue
        wanted = _minutes(change.at + history.wall, end + history.wall)
        there = {
            history.of_text(c.row["scheduled_for"]) + history.wall: c for c in made.get(trigger, [])
        }
        counted = sum(1 + int(c.row["missed"] or 0) for c in made.get(trigger, []))
        policy = change.row["missed"]
        if policy == "all":
            for minute in wanted:
                if not any(abs(minute - each) < 0.5 for each in there):
                    words = f"trigger {trigger} missed its time {minute:.0f}"
                    yield Violation(words, (change, *there.values()))
        elif counted < len(wanted):
            words = f"trigger {trigger} ({policy}) accounts for {counted} of {len(wanted)} times"
            yield Violation(words, (change, *there.values()))


def _minutes(start: float, end: float) -> list[float]:
    first = (start // 60 + 1) * 60
    return [first + 60 * nth for nth in range(int(max(end - first, -60) // 60) + 1)]


def each_event_is_delivered_once(history: History) -> Iterator[Violation]:
    """An acknowledged event is there once, and has its job."""
    events = Counter(
        c.row["id"] for c in history.changes if c.table == "event" and c.what == "insert"
    )
    for name, count in events.items():
        if count > 1:
            yield Violation(f"event {name} was written {count} times", ())
    for call in history.calls:
        if call.op == "event" and call.outcome == "ok" and not events[call.key]:
            yield Violation(f"event {call.key} was acknowledged and never written", (call,))
    deliveries = [c for c in history.changes if c.table == "delivery" and c.what == "insert"]
    made = Counter((c.row.get("event_seq"), c.row.get("trigger_id")) for c in deliveries)
    for (seq, trigger), count in made.items():
        if count > 1:
            yield Violation(f"event {seq} was delivered to {trigger} {count} times", ())
    heard = {seq for seq, _ in made}
    written = [c for c in history.changes if c.table == "event" and c.what == "insert"]
    unheard = [c for c in written if c.row.get("seq") not in heard]
    if history.final.drained is not None and unheard:
        yield Violation(f"{len(unheard)} events were never delivered", tuple(unheard[:3]))
    for change in deliveries:
        job = change.row["job_id"]
        if change.row["status"] == "enqueued" and job not in history.by_job:
            yield Violation(f"the job {job} of a delivery was never written", (change,))
