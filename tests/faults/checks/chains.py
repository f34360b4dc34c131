"""I4, I5, I6, I7, I9: how a job may go from state to state, and who may move it."""

from collections.abc import Iterator

from faults.checks.base import Violation
from faults.history import History
from faults.moves import FINAL

LIVE = ("scheduled", "queued")
PARKED = "dead_letter, pending"
SETTLED = ("dead_letter, resolved", "dead_letter, ignored")
ALLOWED = frozenset(
    {("none", to) for to in LIVE}
    | {("scheduled", "queued"), ("queued", "running")}
    | {("running", to) for to in (*LIVE, *FINAL, PARKED)}
    | {(waits, "canceled") for waits in LIVE}
    | {("queued", "succeeded")}  # answered by the result of another
    | {(PARKED, to) for to in ("queued", *SETTLED)}
    | {(settled, PARKED) for settled in SETTLED}  # opened again
)


def every_move_is_legal(history: History) -> Iterator[Violation]:
    """I4: the table of states; what is final stays."""
    for job, moves in history.by_job.items():
        for before, move in zip((None, *moves), moves, strict=False):
            if (move.came_from, move.to) not in ALLOWED:
                words = f"job {job} went from {move.came_from} to {move.to}"
                yield Violation(words, tuple(each for each in (before, move) if each))


def attempts_count_up(history: History) -> Iterator[Violation]:
    """I5: each start is the next attempt, and there are no more than allowed."""
    for job, moves in history.by_job.items():
        last = 0
        for move in moves:
            if move.to == "running":
                if move.attempt != last + 1:
                    words = f"job {job} went from attempt {last} to {move.attempt}"
                    yield Violation(words, (move,))
                counted = move.attempt - int(move.row["forgiven"] or 0)
                if counted > int(move.row["max_attempts"] or 0):
                    yield Violation(f"job {job} has attempt {counted} too many", (move,))
            if move.attempt < last:
                yield Violation(f"the attempts of job {job} went back", (move,))
            last = max(last, move.attempt)


def only_who_holds_a_job_moves_it(history: History) -> Iterator[Violation]:
    """I6: an attempt ends under its own number and worker; an old one says nothing any more."""
    for call in history.calls:
        if call.op == "stale" and call.outcome == "ok":
            words = f"{call.detail['saying']} of job {call.job} was listened to after its lease"
            yield Violation(words, (call,))
    current: dict[str, int] = {}
    for move in history.moves.in_order:
        if move.came_from == "running" and move.to in FINAL:
            entry = next(e for e in reversed(history.by_job[move.job]) if e.to == "running")
            if (move.attempt, move.worker) != (entry.attempt, entry.worker):
                words = (
                    f"job {move.job} was ended by attempt {move.attempt}, not by {entry.attempt}"
                )
                yield Violation(words, (entry, move))
    for change in history.changes:
        row = change.row
        if change.table == "job" and change.what != "delete" and row.get("id"):
            current[str(row["id"])] = int(row["attempt"] or 0)
        elif change.table == "log_line":
            now = current.get(str(row["job_id"]), 0)
            if int(row["attempt"] or 0) < now:
                words = f"attempt {row['attempt']} of job {row['job_id']} spoke during {now}"
                yield Violation(words, (change,))


def a_job_ends_once(history: History) -> Iterator[Violation]:
    """I7: one end, and its result is what a body answered."""
    marks: dict[str, set[str]] = {}
    for body in history.bodies:
        if body.what == "end":
            marks.setdefault(body.job, set()).add(body.said)
    rows: dict[str, list[object]] = {}
    for change in history.lasting:
        if change.table == "history" and (job := change.row["id"]):
            rows.setdefault(job, []).append(change)
            result = change.row.get("result") or ""
            mark = result.partition('"mark": "')[2].partition('"')[0]
            if mark and mark not in marks.get(job, set()):
                yield Violation(f"job {job} has a result that no body gave", (change,))
    for job, found in rows.items():
        if len(found) > 1:
            yield Violation(f"job {job} ended {len(found)} times", tuple(found))


def a_job_keeps_its_tenant(history: History) -> Iterator[Violation]:
    """I9: from its first row to its last, and its retries too."""
    tenants: dict[str, str | None] = {}
    slugs: dict[str | None, str | None] = {}
    for change in history.changes:
        row = change.row
        if change.table == "tenant":
            slugs[row["id"]] = row["slug"]
        if change.table not in ("job", "dead_letter", "history") or change.what == "delete":
            continue
        job, tenant = str(row["id"]), row["tenant_id"]
        if tenants.setdefault(job, tenant) != tenant:
            yield Violation(f"job {job} changed its tenant", (change,))
        parent = row.get("retry_of")
        if parent and parent in tenants and tenants[parent] != tenant:
            yield Violation(f"job {job} retries another tenant's", (change,))
    for call in history.calls:
        if call.outcome == "ok" and call.job in tenants and slugs:
            slug = slugs.get(tenants[call.job])
            if slug != call.tenant:
                yield Violation(f"job {call.job} is {slug}'s, asked for by {call.tenant}", (call,))
