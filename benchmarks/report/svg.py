"""A picture of the figures: horizontal bars, one panel a question, as one file of SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, ROW, HEAD, GAP = 760, 22, 44, 22
NAME, VALUE = 118, 92  # what the words beside the bars need
OURS, FLOOR, OTHERS = "#0b7a75", "#9aa5b1", "#c8793a"


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    text: str
    colour: str = OTHERS


@dataclass(frozen=True)
class Panel:
    title: str
    note: str
    rows: Sequence[Row]

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.rows) + GAP


def picture(panels: Sequence[Panel]) -> str:
    height = sum(panel.height for panel in panels) + GAP
    drawn, y = [], GAP
    for panel in panels:
        drawn.append(_panel(panel, y))
        y += panel.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape("; ".join(panel.title for panel in panels))}" '
        'font-family="system-ui, sans-serif" font-size="13">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _panel(panel: Panel, top: int) -> str:
    most = max((row.value for row in panel.rows), default=0) or 1
    words = [
        f'<text x="16" y="{top + 12}" font-weight="600" fill="#1b2733">{escape(panel.title)}'
        "</text>",
        f'<text x="16" y="{top + 29}" font-size="11" fill="#5c6873">{escape(panel.note)}</text>',
    ]
    for nth, row in enumerate(panel.rows):
        y = top + HEAD + nth * ROW
        wide = max((WIDTH - NAME - VALUE - 32) * row.value / most, 1)
        words.append(
            f'<text x="{NAME}" y="{y + 12}" text-anchor="end" fill="#1b2733">{escape(row.name)}'
            f'</text><rect x="{NAME + 8}" y="{y}" width="{wide:.1f}" height="15" rx="2" '
            f'fill="{row.colour}"/><text x="{NAME + 14 + wide:.1f}" y="{y + 12}" fill="#1b2733">'
            f"{escape(row.text)}</text>"
        )
    return "\n".join(words)
