"""I20, I21, I22: nothing is left over, what people do is audited, what was read was so."""

from collections.abc import Iterator
from itertools import groupby

from faults.checks.base import Violation
from faults.history import Change, History

# A commit has its time before it is on the disk, and is seen only then.
UNSEEN = 3.0


def nothing_is_left(history: History) -> Iterator[Violation]:
    """I20: counters at nought, no open transaction, no lock, no process."""
    for words in history.final.left:
        yield Violation(words, ())


def what_people_change_is_audited(history: History) -> Iterator[Violation]:
    """I21: in the same transaction, once."""
    asked: dict[str | None, str | None] = {}
    paused: dict[str | None, tuple[str | None, ...]] = {}
    settled: set[str | None] = set()
    for _, some in groupby(history.changes, key=lambda each: (each.lsn, each.xid)):
        changes = list(some)
        audit = [c.row for c in changes if c.table == "audit" and c.what == "insert"]
        for change in changes:
            wanted = _audited(change, asked, paused, settled)
            if wanted is None:
                continue
            action, target = wanted
            rows = [r for r in audit if r["target"] == target and _is(r["action"], action)]
            if len(rows) != 1:
                words = f"{action} of {target} has {len(rows)} rows in the audit"
                yield Violation(words, (change,))


def _is(action: str | None, wanted: str) -> bool:
    return (action or "").startswith(wanted)


def _audited(
    change: Change,
    asked: dict[str | None, str | None],
    paused: dict[str | None, tuple[str | None, ...]],
    settled: set[str | None],
) -> tuple[str, str | None] | None:
    """What of this row somebody did, and to what."""
    row = change.row
    match change.table, change.what:
        case "tenant", "update":
            before = paused.get(row["id"])
            paused[row["id"]] = now = (row["max_running"], row["plan"], row["paused_at"])
            return ("tenant.", row["slug"]) if before is not None and before != now else None
        case "tenant", "insert":
            paused[row["id"]] = (row["max_running"], row["plan"], row["paused_at"])
        case "job", "update":
            before_asked = asked.get(row["id"])
            asked[row["id"]] = row["cancel_requested_at"]
            if before_asked is None and row["cancel_requested_at"] is not None:
                return "job.cancel", row["id"]
        case "dead_letter", "update" if row["status"] in ("retried", "resolved", "ignored"):
            (settled.discard if row["status"] == "retried" else settled.add)(row["id"])
            return "dead_letter.", row["id"]
        case "dead_letter", "update" if row["id"] in settled:
            settled.discard(row["id"])
            return "dead_letter.reopen", row["id"]
    return None


def what_was_read_was_so(history: History) -> Iterator[Violation]:
    """I22: a read tells of a state that the job had just then; so nobody sees it go back."""
    for call in history.calls:
        moves = history.by_job.get(call.job or "", [])
        if call.op != "read" or call.outcome != "ok" or not moves:
            continue
        told = call.detail.get("job_status")
        ends = [*(move.at for move in moves[1:]), float("inf")]
        if not any(
            move.to.partition(",")[0] == told
            and move.at <= call.ended + UNSEEN
            and end >= call.began - UNSEEN
            for move, end in zip(moves, ends, strict=True)
        ):
            yield Violation(f"job {call.job} was told to be {told}", (call, *moves))
