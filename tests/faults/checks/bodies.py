"""I11, I12: what really ran, beside what the database believes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from faults.checks.base import Violation
from faults.history import Body, History
from faults.kinds import CRASHES
from faults.moves import Transition

CLOCKS = 0.25  # by so much the time of a commit and of a body may differ
# A claim is not waited for on its way to the disk, so that a crash may undo it: within this.
UNWRITTEN = 2.0


def claims_of(history: History) -> Mapping[int, Transition | None]:
    """For each start of a body (by its place in the list) the claim that it goes back to."""
    starts: dict[str, list[tuple[int, Body]]] = defaultdict(list)
    for nth, body in enumerate(history.bodies):
        if body.what == "start":
            starts[body.job].append((nth, body))
    found: dict[int, Transition | None] = {}
    for job, some in starts.items():
        free = [move for move in history.by_job.get(job, []) if move.to == "running"]
        for nth, body in sorted(some, key=lambda each: each[1].at):
            fits = [each for each in free if _is_of(each, body)]
            found[nth] = fits[-1] if fits else None
            if fits:
                free.remove(fits[-1])
    return found


def _is_of(claim: Transition, body: Body) -> bool:
    number = claim.attempt - int(claim.row["forgiven"] or 0)
    return number == body.attempt and claim.at <= body.at + CLOCKS


def _undone(history: History, at: float) -> bool:
    """Whether a crash can have undone a claim of that time."""
    return any(
        fault.detail.get("at", fault.began) - UNWRITTEN <= at
        and at <= fault.detail.get("up", fault.ended) + UNWRITTEN
        for fault in history.faults(*CRASHES)
    )


def undone(history: History) -> list[Body]:
    """Bodies whose claim a crash has undone, which is allowed."""
    starts = [history.bodies[nth] for nth, claim in claims_of(history).items() if claim is None]
    return [body for body in starts if _undone(history, body.at)]


def every_body_was_claimed(history: History) -> Iterator[Violation]:
    """I11: no ghost runs, and one run a claim."""
    for nth, claim in claims_of(history).items():
        body = history.bodies[nth]
        if claim is None and not _undone(history, body.at):
            words = f"attempt {body.attempt} of job {body.job} ran, and nobody had claimed it"
            yield Violation(words, (body, *history.by_job.get(body.job, [])[-4:]))


def bodies_overlap_only_after_a_lost_lease(history: History) -> Iterator[Violation]:
    """I12: two at once only where the first one's lease was over, and a fault was the reason."""
    claims = claims_of(history)
    ends = {(b.job, b.said, b.pid): b for b in history.bodies if b.what == "end"}
    runs: dict[str, list[tuple[Body, Body, Transition | None]]] = defaultdict(list)
    for nth, claim in claims.items():
        start = history.bodies[nth]
        # Without an end it was killed, and nobody can say when.
        end = ends.get((start.job, start.said, start.pid), start)
        runs[start.job].append((start, end, claim))
    for job, some in runs.items():
        some.sort(key=lambda each: each[0].at)
        for (start, end, claim), (later, _, _) in pairwise(some):
            if end.at <= later.at:
                continue
            if claim is None or _undone(history, start.at):
                continue  # the claim itself was undone by a crash, which I11 looks at
            lost = _lost_at(history, claim)
            if lost is None or lost > later.at + CLOCKS:
                words = f"job {job} ran twice at once, and the first had not lost its lease"
                yield Violation(words, (claim, start, later, end))
            elif not any(fault.began <= later.at for fault in history.injected):
                yield Violation(f"job {job} ran twice at once for no reason", (start, later, end))


def _lost_at(history: History, claim: Transition) -> float | None:
    """When the attempt was taken from its worker because the lease was over."""
    after = [m for m in history.by_job[claim.job] if m.lsn > claim.lsn and m.came_from == "running"]
    if not after:
        return None
    over = history.leases.get(claim.worker or "", [])
    known = [lease for at, lease in over if at <= after[0].at + CLOCKS]
    lease = max(known, default=float("-inf"))
    return after[0].at if lease <= after[0].at + CLOCKS else None
