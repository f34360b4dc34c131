"""Why a bar is not reached: what stands in its way, and which decision tells of it."""

from typing import NamedTuple

TIME = "0031-where-the-time-goes"
SNAPSHOTS = "0032-old-snapshots"


class Reason(NamedTuple):
    sentence: str  # its end follows the link
    adr: str


_START = Reason(
    "An enqueue checks the tenant, the definition and the backlog and leaves an arrival, and a "
    "claim takes its turns at share, lane and gates: statements that the peer does not have",
    TIME,
)

# By the name of the bar.
REASONS = {
    "drain, one process, over the fastest Python peer on PostgreSQL": Reason(
        "A job has a tenant, a limit and a lease to pay for, and a claim and a finish of one "
        "tenant take turns at its share",
        TIME,
    ),
    "drain, one process, of the raw floor": Reason(
        "A job costs the floor no tenant, limit, lease or indexes of the history, and a claim and "
        "a finish of one tenant take turns at its share",
        TIME,
    ),
    "two processes over one": Reason(
        "One worker process and PostgreSQL already fill most of two cores, so there is no core for "
        "a second, and the claims and finishes of one tenant take turns at its share",
        TIME,
    ),
    "two processes over one, jobs of 300 µs": Reason(
        "PostgreSQL and the workers' own part of each job need the same cores as the jobs, and the "
        "claims and finishes of one tenant take turns at its share",
        TIME,
    ),
    "start p99 over the best peer's on PostgreSQL": _START,
    "start p99 over the best of all peers', with those on Redis": _START,
    "B beside A's flood over B alone": Reason(
        "Virtual time moves in its index four times a second at most, so a turn may come a "
        "quarter of a second late",
        SNAPSHOTS,
    ),
    "1,000,000 jobs and 10,000 tenants over 1,000 and 10": Reason(
        "With so many tenants a claim and a finish write more shares, each with its lane and its "
        "gate, than with ten",
        TIME,
    ),
    "at the end of an old snapshot over before": Reason(
        "What has died since cannot be cleared away, and some looks still read it", SNAPSHOTS
    ),
    "a minute after its end over before": Reason(
        "Vacuum has to clear what died meanwhile, and takes its part of the machine for it; and "
        "the minutes before are the first of a new database, the first of them the fastest",
        SNAPSHOTS,
    ),
    "at the end of an old snapshot over the same minutes without": Reason(
        "What has died since cannot be cleared away, and some looks still read it", SNAPSHOTS
    ),
    "a minute after its end over the same minute without": Reason(
        "Vacuum has to clear what died meanwhile, and takes its part of the machine for it",
        SNAPSHOTS,
    ),
}


def why(bar: str) -> str:
    """One sentence, with a link from docs/benchmarks.md."""
    if bar not in REASONS:
        return "No decision has this price: it is a fault, and nobody has found it yet."
    sentence, adr = REASONS[bar]
    return f"{sentence} ([adr/{adr[:4]}](adr/{adr}.md))."
