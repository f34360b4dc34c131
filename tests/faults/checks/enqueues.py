"""I1, I2, I3, I17: what is acknowledged is there, once; nothing else is."""

from collections import defaultdict
from collections.abc import Iterator

from faults.checks.base import Violation
from faults.history import Call, History
from faults.moves import Transition

# A commit has its time before it is on the disk, and is seen only then.
UNSEEN = 3.0
ENQUEUES = frozenset(
    {"library", "own_id", "batch", "transaction", "by_http", "dedupe", "keyed", "later", "long"}
    | {"nemesis"}
)


def _first(history: History) -> dict[str, Transition]:
    return {job: moves[0] for job, moves in history.by_job.items()}


def no_acknowledged_job_is_lost(history: History) -> Iterator[Violation]:
    """I1: whatever was answered with an id has a row, in the log and at the end."""
    for call in history.calls:
        if call.op in ENQUEUES and call.outcome == "ok" and call.job:
            if call.job not in history.by_job:
                yield Violation(f"job {call.job} was acknowledged and never written", (call,))
            elif call.job not in history.final.jobs:
                last = history.by_job[call.job][-1]
                yield Violation(f"job {call.job} was acknowledged and is gone", (call, last))


def nothing_comes_from_nowhere(history: History) -> Iterator[Violation]:
    """I2: each job was asked for, by somebody who was not refused."""
    asked: dict[str, list[Call]] = defaultdict(list)
    for call in history.calls:
        asked[call.key].append(call)
    made = {
        row["job_id"]: change
        for change in history.changes
        if change.table in ("firing", "delivery")
        for row in (change.row,)
        if row.get("job_id")
    }
    retried = {call.job for call in history.calls if call.op == "retry" and call.outcome != "fail"}
    for job, move in _first(history).items():
        row = move.row
        if row.get("source") in ("schedule", "event"):
            if job not in made:
                yield Violation(f"job {job} has a trigger that does not know it", (move,))
        elif row.get("retry_of"):
            if row["retry_of"] not in retried:
                yield Violation(f"job {job} retries what nobody retried", (move,))
        elif row.get("source") != "system":
            calls = asked.get(row.get("correlation_id") or "", [])
            if not any(call.op in ENQUEUES and call.outcome != "fail" for call in calls):
                yield Violation(f"job {job} was not asked for", (move, *calls))


def an_id_is_one_job(history: History) -> Iterator[Violation]:
    """I3: the same id again is the same job, and another tenant cannot have it."""
    by_name: dict[str, set[str]] = defaultdict(set)
    for call in history.calls:
        if call.op == "own_id" and call.outcome == "ok" and call.job != call.detail["id"]:
            yield Violation(f"asked for id {call.detail['id']}, was answered {call.job}", (call,))
        if call.op == "taken_id" and call.outcome == "ok":
            yield Violation(f"id {call.job} is another tenant's, and was accepted", (call,))
    for job, move in _first(history).items():
        name = move.row.get("correlation_id")
        if name and name.startswith("c-") and not move.row.get("retry_of"):
            by_name[name].add(job)
    for name, jobs in by_name.items():
        if len(jobs) > 1:
            first = tuple(history.by_job[job][0] for job in sorted(jobs))
            yield Violation(f"one request, {name}, made {len(jobs)} jobs", first)
    for job, moves in history.by_job.items():
        if len(twice := [move for move in moves if move.came_from == "none"]) > 1:
            yield Violation(f"job {job} was made twice", tuple(twice))


def a_dedupe_key_has_one_live_job(history: History) -> Iterator[Violation]:
    """I17: never two at once; and who is told of another is told of one that had the key then."""
    live: dict[tuple[str | None, str], set[str]] = defaultdict(set)
    spans: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    began: dict[str, float] = {}
    for move in history.moves.in_order:
        key = move.row.get("dedupe_key")
        if not key:
            continue
        place = (move.row["tenant_id"], key)
        if move.to in ("scheduled", "queued", "running"):
            began.setdefault(move.job, move.at)
            live[place].add(move.job)
            if len(live[place]) > 1:
                moves = tuple(history.by_job[job][-1] for job in sorted(live[place]))
                yield Violation(f'two live jobs have the key "{key}"', (move, *moves))
        elif move.job in live[place]:
            live[place].discard(move.job)
            spans[key].append((move.job, began.pop(move.job), move.at))
    for key, jobs in ((key, jobs) for (_, key), jobs in live.items()):
        spans[key] += [(job, began[job], float("inf")) for job in jobs]
    for call in history.calls:
        key = call.detail.get("dedupe_key")
        if not key or call.outcome != "ok" or not call.detail.get("deduplicated"):
            continue
        if not any(
            job == call.job and start <= call.ended + UNSEEN and end >= call.began - UNSEEN
            for job, start, end in spans[key]
        ):
            words = f'told of job {call.job}, which did not have the key "{key}" then'
            yield Violation(words, (call,))
