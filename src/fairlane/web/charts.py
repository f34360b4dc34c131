"""Numbers to SVG: pure functions, presentation attributes and classes only (a policy forbids style
attributes), each with the same numbers as a table for whoever does not see the drawing.

A series has at most 120 points; the database buckets. Colours are classes: a state (`running`) or
`q1` to `q6` in a fixed order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

Numbers = Sequence[float]

MOST = 120
WIDTH, HEIGHT = 520, 148
LEFT, RIGHT, TOP, BOTTOM = 34, 4, 8, 18


@dataclass(frozen=True)
class Series:
    name: str
    values: Numbers
    colour: str = "q1"


@dataclass(frozen=True)
class Mark:
    """Something that happened at one point: a deploy."""

    at: int
    text: str


def sparkline(values: Numbers, colour: str = "queued", width: int = 96, height: int = 28) -> Markup:
    """A figure's recent past. Its label is the figure beside it."""
    points = _points(values, 1, width - 1, 3, height - 3, max(values, default=0) or 1)
    return Markup(
        '<svg class="spark c-{}" viewBox="0 0 {} {}" aria-hidden="true" preserveAspectRatio="none">'
        '<polyline points="{}"/></svg>'
    ).format(colour, width, height, points)


def lines(
    label: str,
    ticks: Sequence[str],
    series: Sequence[Series],
    *,
    unit: str = "",
    filled: bool = False,
    marks: Sequence[Mark] = (),
) -> Markup:
    """Lines over time; `ticks` names each point, the first, middle and last are written."""
    top = _nice(max((max(each.values, default=0) for each in series), default=0))
    drawn = []
    for each in series:
        points = _points(each.values, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, top)
        if filled:
            drawn.append(_area(points, None, each.colour))
        drawn.append(_line(points, each.colour))
    return _framed(label, ticks, series, top, drawn, marks, unit)


def stacked(
    label: str,
    ticks: Sequence[str],
    series: Sequence[Series],
    *,
    unit: str = "",
    marks: Sequence[Mark] = (),
) -> Markup:
    """Areas on top of each other."""
    count = max((len(each.values) for each in series), default=0)
    sums = [0.0] * count
    layers: list[tuple[Series, list[float], list[float]]] = []
    for each in series:
        below = list(sums)
        sums = [low + value for low, value in zip(sums, each.values, strict=True)]
        layers.append((each, below, sums))
    top = _nice(max(sums, default=0))
    drawn = []
    for each, low, high in layers:
        box = (LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, top)
        points = _points(high, *box)
        drawn += [_area(points, _points(low, *box), each.colour), _line(points, each.colour)]
    return _framed(label, ticks, series, top, drawn, marks, unit)


def bars(
    label: str, rows: Sequence[tuple[str, float, float | None, str, str]], caption: str = ""
) -> Markup:
    """Horizontal bars, each with a tick: (name, value 0..1, tick 0..1, text, colour)."""
    drawn = []
    for number, (name, value, tick, text, colour) in enumerate(rows):
        y = number * 27
        wide = 530 * min(max(value, 0), 1)
        drawn.append(
            Markup(
                '<text class="name" x="0" y="{}">{}</text>'
                '<rect class="track" x="104" y="{}" width="530" height="11" rx="5.5"/>'
                '<rect class="bar c-{}" x="104" y="{}" width="{:.1f}" height="11" rx="5.5"/>'
                '<text class="value" x="700" y="{}" text-anchor="end">{}</text>'
            ).format(y + 16, _cut(name, 15), y + 7, colour, y + 7, wide, y + 16, text)
        )
        if tick is not None:
            drawn.append(
                Markup('<rect class="tick" x="{:.1f}" y="{}" width="2" height="19"/>').format(
                    104 + 530 * min(max(tick, 0), 1) - 1, y + 3
                )
            )
    table = _table(label, ("name", "value"), [(name, text) for name, _, _, text, _ in rows])
    note = Markup('<p class="note">{}</p>').format(caption) if caption else ""
    return Markup(
        '<figure class="chart"><svg class="bars" viewBox="0 0 700 {}" role="img" aria-label="{}">{}'
        "</svg>{}{}</figure>"
    ).format(max(len(rows), 1) * 27, label, Markup("").join(drawn), note, table)


def bar(value: float, tick: float, colour: str, label: str) -> Markup:
    """One bar with its tick, for a cell of a table: 0..1 of its width."""
    return Markup(
        '<svg class="bars one" viewBox="0 0 240 15" preserveAspectRatio="xMinYMid" role="img"'
        ' aria-label="{}">'
        '<rect class="track" x="0" y="2" width="240" height="11" rx="5.5"/>'
        '<rect class="bar c-{}" x="0" y="2" width="{:.1f}" height="11" rx="5.5"/>'
        '<rect class="tick" x="{:.1f}" y="0" width="2" height="15"/></svg>'
    ).format(label, colour, 240 * min(max(value, 0), 1), min(238 * min(max(tick, 0), 1), 238))


def share_bar(done: int, now: int, failed: int, total: int) -> Markup:
    """How much of a whole is done, has failed, is under way: one bar."""
    at, drawn = 0.0, []
    for colour, count in (("succeeded", done), ("failed", failed), ("running", now)):
        width = round(700 * min(count / max(total, 1), 1), 1)
        drawn.append(
            Markup('<rect class="c-{}" x="{}" y="0" width="{}" height="9"/>').format(
                colour, round(at, 1), width
            )
        )
        at += width
    return Markup(
        '<svg class="share" viewBox="0 0 700 9" preserveAspectRatio="none" role="img"'
        ' aria-label="{}"><rect class="track" width="700" height="9"/>{}</svg>'
    ).format(
        f"{done} completed, {failed} failed, {now} in progress, of {total}",
        Markup("").join(drawn),
    )


def strip(states: Sequence[tuple[str, str]], label: str) -> Markup:
    """The last runs as squares, oldest first: (state, what to say of it)."""
    squares = Markup("").join(
        Markup(
            '<rect class="c-{}" x="{}" y="0" width="9" height="14" rx="2"><title>{}</title></rect>'
        ).format(state, number * 11, text)
        for number, (state, text) in enumerate(states)
    )
    return Markup(
        '<svg class="strip" viewBox="0 0 {} 14" role="img" aria-label="{}">{}</svg>'
    ).format(max(len(states), 1) * 11, label, squares)


def segments(
    label: str, parts: Sequence[tuple[str, float, float, str]], start: str, end: str
) -> Markup:
    """A line of time: (kind, from 0..1, to 0..1, text). Waits are thin, attempts are thick."""
    drawn = []
    for kind, begin, stop, text in parts:
        x, wide = 700 * begin, max(700 * (stop - begin) - 2, 2)
        thick = kind in ("attempt-failed", "running", "succeeded", "failed", "canceled")
        y, high = (8, 18) if thick else (13, 8)
        drawn.append(
            Markup(
                '<rect class="c-{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="4">'
                "<title>{}</title></rect>"
            ).format(kind.removeprefix("attempt-"), x, y, wide, high, text)
        )
        if wide > 5.4 * len(text):
            drawn.append(Markup('<text x="{:.1f}" y="42">{}</text>').format(x, text))
    table = _table(label, ("part", "share"), [(t, f"{(b - a) * 100:.0f}%") for _, a, b, t in parts])
    return Markup(
        '<figure class="chart"><svg class="segments" viewBox="0 0 700 66" role="img"'
        ' aria-label="{}">{}<path class="axis" d="M0 50.5H700"/><text x="0" y="63">{}</text>'
        '<text x="700" y="63" text-anchor="end">{}</text></svg>{}</figure>'
    ).format(label, Markup("").join(drawn), start, end, table)


# Parts ----------------------------------------------------------------------


def _framed(
    label: str,
    ticks: Sequence[str],
    series: Sequence[Series],
    top: float,
    drawn: Sequence[Markup],
    marks: Sequence[Mark],
    unit: str,
) -> Markup:
    floor = HEIGHT - BOTTOM
    grid = Markup("").join(
        Markup(
            '<path class="grid" d="M{} {:.1f}H{}"/>'
            '<text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
        ).format(LEFT, y, WIDTH - RIGHT, LEFT - 5, y + 3, said)
        for y, said in (
            (TOP, _short(top)),
            ((TOP + floor) / 2, _short(top / 2)),
            (float(floor), "0"),
        )
    )
    last = max(len(ticks) - 1, 1)
    step = (WIDTH - RIGHT - LEFT) / last
    named = [(0, "start"), (last // 2, "middle"), (last, "end")] if len(ticks) > 2 else []
    axis = Markup("").join(
        Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
            LEFT + at * step, HEIGHT - 4, anchor, ticks[at]
        )
        for at, anchor in named
    )
    flags = Markup("").join(
        Markup(
            '<path class="mark" d="M{0:.1f} {1}V{2}"/>'
            '<text x="{3:.1f}" y="{4}" text-anchor="{5}">{6}</text>'
        ).format(
            LEFT + mark.at * step,
            TOP,
            floor,
            # On the side where there is room.
            LEFT + mark.at * step + (4 if mark.at * 2 < last else -4),
            TOP + 8,
            "start" if mark.at * 2 < last else "end",
            mark.text,
        )
        for mark in marks
    )
    rows = [
        (tick, *(f"{each.values[at]:g}{unit}" for each in series)) for at, tick in enumerate(ticks)
    ]
    table = _table(label, ("time", *(each.name for each in series)), rows)
    return Markup(
        '<fl-chart class="chart"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">'
        "{}{}{}{}</svg>{}</fl-chart>"
    ).format(WIDTH, HEIGHT, label, grid, Markup("").join(drawn), axis, flags, table)


def _table(label: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(each) for each in heads)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(each) for each in row)
        )
        for row in rows
    )
    # Around the table: a table takes the height of its rows whatever the style says, and the page
    # would scroll on over nothing.
    return Markup(
        '<div class="unseen"><table><caption>{}</caption><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(label, head, body)


def _points(
    values: Numbers, left: float, right: float, top: float, bottom: float, most: float
) -> str:
    if len(values) > MOST:
        raise ValueError(f"a series has at most {MOST} points; bucket them in the database")
    step = (right - left) / max(len(values) - 1, 1)
    scale = (bottom - top) / (most or 1)
    return " ".join(
        f"{left + at * step:.1f},{bottom - value * scale:.1f}" for at, value in enumerate(values)
    )


def _line(points: str, colour: str) -> Markup:
    return Markup('<polyline class="line c-{}" points="{}"/>').format(colour, points)


def _area(points: str, below: str | None, colour: str) -> Markup:
    if not points:
        return Markup("")
    pairs = points.split()
    floor = HEIGHT - BOTTOM
    if below is None:
        back = [f"{pairs[-1].split(',')[0]},{floor}", f"{pairs[0].split(',')[0]},{floor}"]
    else:
        back = list(reversed(below.split()))
    return Markup('<polygon class="area c-{}" points="{}"/>').format(
        colour, escape(" ".join([*pairs, *back]))
    )


def _nice(most: float) -> float:
    """The next round number, so that the grid's figures are whole."""
    if most <= 0:
        return 2
    size = 1.0
    while size * 10 <= most:
        size *= 10
    while size > most:
        size /= 10
    return next(size * step for step in (1, 2, 4, 6, 8, 10, 20) if size * step >= most)


def _short(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
