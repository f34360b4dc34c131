"""The picture of fairness, worked out and drawn: `python -m docsite.picture` writes it.

Two tenants on four slots, told twice: first come, first served, and by worker seconds. Nothing in
it is measured; it is the rule itself, at work on a handful of jobs.
"""

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs/pictures/fairness.svg"

SLOTS = 4
COLOURS = {"initech": "#b8bfcc", "globex": "#4f46e5"}
SECOND, ROW, LEFT, TOP = 26, 22, 16, 64
END = 24


@dataclass(frozen=True)
class Asked:
    tenant: str
    at: float
    seconds: float


@dataclass(frozen=True)
class Ran:
    tenant: str
    slot: int
    start: float
    end: float


# One floods the queue with long jobs; the other comes a little later with short ones.
ASKED = [Asked("initech", 0, 4)] * 20 + [Asked("globex", 3, 1)] * 12


def run(fair: bool) -> list[Ran]:
    """Who runs where and when, until all is done."""
    waiting = list(ASKED)
    free_at = [0.0] * SLOTS
    used = dict.fromkeys(COLOURS, 0.0)
    ran: list[Ran] = []
    while waiting:
        slot = min(range(SLOTS), key=lambda each: free_at[each])
        now = free_at[slot]
        due = [job for job in waiting if job.at <= now]
        if not due:
            free_at[slot] = min(job.at for job in waiting)
            continue
        if fair:
            # No credit for the time that nobody asked: who comes starts where the others are.
            busy = [used[t] for t in used if used[t] and any(job.tenant == t for job in due)]
            for tenant in {job.tenant for job in due}:
                used[tenant] = max(used[tenant], min(busy, default=0.0))
        job = min(due, key=lambda each: (used[each.tenant] if fair else 0, waiting.index(each)))
        waiting.remove(job)
        used[job.tenant] += job.seconds
        free_at[slot] = now + job.seconds
        ran.append(Ran(job.tenant, slot, now, now + job.seconds))
    return ran


def drawn() -> str:
    width = 2 * LEFT + END * SECOND
    height = 2 * (SLOTS * ROW + TOP) + 26
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img">',
        "<title>Two tenants on four slots: first come, first served, and fair</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (title, fair) in enumerate(
        (("first come, first served", False), ("Fairlane: by worker seconds", True))
    ):
        lines += _panel(title, run(fair), number * (SLOTS * ROW + TOP))
    for number, (tenant, colour) in enumerate(COLOURS.items()):
        what = {"initech": "initech: 20 jobs of 4 s at once", "globex": "globex: 12 jobs of 1 s"}
        x, y = LEFT + number * 260, height - 22
        lines += [
            f'<rect x="{x}" y="{y}" width="12" height="12" rx="2" fill="{colour}"/>',
            f'<text x="{x + 18}" y="{y + 11}" fill="#333">{what[tenant]}</text>',
        ]
    return "\n".join([*lines, "</svg>\n"])


def _panel(title: str, ran: list[Ran], down: int) -> list[str]:
    theirs = [job for job in ran if job.tenant == "globex"]
    waited = min(job.start for job in theirs) - ASKED[-1].at
    done = max(job.end for job in theirs) - ASKED[-1].at
    said = f"globex waits {waited:g} s for its first start, and is done after {done:g} s"
    lines = [
        f'<text x="{LEFT}" y="{down + 24}" font-weight="600" fill="#111">{title}</text>',
        f'<text x="{LEFT}" y="{down + 43}" fill="#555">{said}</text>',
    ]
    for job in ran:
        if job.start < END:
            x, y = LEFT + job.start * SECOND, down + TOP - 12 + job.slot * ROW
            across = (min(job.end, END) - job.start) * SECOND - 2
            lines.append(
                f'<rect x="{x:g}" y="{y}" width="{across:g}" height="{ROW - 3}" rx="3" '
                f'fill="{COLOURS[job.tenant]}"/>'
            )
    at = LEFT + ASKED[-1].at * SECOND
    top, bottom = down + TOP - 16, down + TOP - 12 + SLOTS * ROW
    lines.append(
        f'<line x1="{at}" x2="{at}" y1="{top}" y2="{bottom}" stroke="#4f46e5" '
        'stroke-dasharray="3 3"/>'
    )
    return lines


if __name__ == "__main__":
    FILE.write_text(drawn())
