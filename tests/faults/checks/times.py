"""I8, I13, I18: what has to happen, and within what time."""

from collections.abc import Iterator

from faults.checks.base import Violation
from faults.history import History, Injected
from faults.kinds import OUTAGES
from faults.moves import FINAL, Transition

SWEEP = 1.0  # a lost lease is noticed within this
MARGIN = 1.5  # for a machine that has more to do
CANCEL = 8.0
# Who could not reach the database tries again after a pause that grows up to five seconds.
BACKOFF = 6.0
# Whoever kept house may have been the one.
HOUSE = ("stop_", "kill_", "block_", "poison")


def everything_ends(history: History) -> Iterator[Violation]:
    """I8: once all is healed, every job comes to its end."""
    if history.final.drained is None:
        left = {job: s for job, s in history.final.jobs.items() if s in ("queued", "running")}
        moves = [history.by_job[job][-1] for job in list(left)[:5] if job in history.by_job]
        yield Violation(f"{len(left)} jobs were left when all was healed", tuple(moves))


def allowance(history: History, start: float, end: float, but: Injected | None = None) -> float:
    """How much longer something may take, for other faults that came between."""
    seconds = history.lag(start, end + BACKOFF)
    for fault in history.injected:
        if fault is not but and fault.kind in OUTAGES:
            began, ended = fault.began, fault.detail.get("up", fault.ended)
            if began <= end + seconds and ended + BACKOFF >= start:
                seconds += ended - began + BACKOFF
        elif fault is not but and fault.kind.startswith(HOUSE):
            until = fault.ended + history.lease
            seconds += (history.lease + SWEEP) * (fault.began <= end + seconds and until >= start)
    return seconds


def holds(history: History, pids: list[int], at: float) -> list[Transition]:
    """The claims that the workers of these processes held at that time."""
    ids = {
        change.row["id"]
        for change in history.changes
        if change.table == "worker" and change.row.get("pid") in {str(pid) for pid in pids}
    }
    found = []
    for moves in history.by_job.values():
        before = [move for move in moves if move.at <= at]
        if before and before[-1].to == "running" and before[-1].worker in ids:
            found.append(before[-1])
    return found


def freed(history: History, claim: Transition) -> Transition | None:
    """How the job left the attempt."""
    moves = history.by_job[claim.job]
    return next((m for m in moves if m.lsn > claim.lsn and m.came_from == "running"), None)


def jobs_of_the_dead_are_freed(history: History) -> Iterator[Violation]:
    """I13: a killed or stopped worker's jobs are claimable within its lease and a sweep."""
    for fault in history.faults("kill_worker", "kill_child", "stop_worker"):
        at = fault.detail.get("at", fault.began)
        if not fault.worked:
            continue
        due = at + history.lease + SWEEP + MARGIN
        due += allowance(history, at, due, fault)
        for claim in holds(history, fault.detail["pids"], at):
            move = freed(history, claim)
            if (move.at if move else history.ended) > due:
                late = (move.at if move else history.ended) - at
                words = f"job {claim.job} was freed {late:.1f} s after {fault.kind}"
                yield Violation(words, tuple(e for e in (fault, claim, move) if e))


def what_is_canceled_stops(history: History) -> Iterator[Violation]:
    """I18: no new attempt, an end soon, and the body is gone."""
    for call in history.calls:
        moves = history.by_job.get(call.job or "", [])
        if call.op != "cancel" or call.outcome != "ok" or not moves:
            continue
        after = [move for move in moves if move.at > call.ended]
        if started := [move for move in after if move.to == "running"]:
            yield Violation(f"job {call.job} started after it was canceled", (call, *started))
        back = [m for m in after if m.came_from == "running" and m.to not in FINAL]
        if back and not started:
            yield Violation(f"job {call.job} went on after it was canceled", (call, *back))
        due = call.ended + CANCEL
        due += allowance(history, call.ended, due)
        end = next((move for move in moves if move.to in FINAL), None)
        if (end.at if end else history.ended) > due:
            yield Violation(f"job {call.job} did not end when canceled", (call, moves[-1]))
        late = [b for b in history.bodies if b.job == call.job and b.at > due and b.what == "end"]
        if late:
            yield Violation(f"the body of job {call.job} lived on", (call, *late))
