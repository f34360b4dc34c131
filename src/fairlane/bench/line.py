"""One line of the table: a figure, what it is compared with, and the bar it is to reach."""

from dataclasses import dataclass

from fairlane.core.json import dumps


@dataclass(frozen=True)
class Bar:
    """A ratio that is promised: at least this much of the other side, or at most."""

    ratio: float
    at_most: bool = False

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.ratio:.2f}"

    def reached_by(self, ratio: float) -> bool:
        return ratio <= self.ratio if self.at_most else ratio >= self.ratio


@dataclass(frozen=True)
class Line:
    benchmark: str
    case: str
    unit: str
    figure: float
    against: float | None = None
    against_what: str = ""
    ratio: float | None = None
    bar: Bar | None = None
    note: str = ""

    @property
    def reached(self) -> bool | None:
        if self.bar is None or self.ratio is None:
            return None
        return self.bar.reached_by(self.ratio)

    def cells(self) -> tuple[str, ...]:
        other = "" if self.against is None else f"{_figure(self.against)} {self.against_what}"
        return (
            self.benchmark,
            self.case,
            f"{_figure(self.figure)} {self.unit}",
            other,
            "" if self.ratio is None else f"{self.ratio:.2f}",
            "" if self.bar is None else str(self.bar),
            {True: "yes", False: "NO", None: ""}[self.reached],
            self.note,
        )


HEADINGS = ("benchmark", "case", "figure", "against", "ratio", "bar", "reached", "")


def as_table(lines: list[Line]) -> str:
    rows = [HEADINGS, *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def as_json_text(lines: list[Line]) -> str:
    return dumps(
        [
            {
                "benchmark": line.benchmark,
                "case": line.case,
                "unit": line.unit,
                "figure": line.figure,
                "against": line.against,
                "against_what": line.against_what or None,
                "ratio": line.ratio,
                "bar": str(line.bar) if line.bar else None,
                "reached": line.reached,
                "note": line.note or None,
            }
            for line in lines
        ]
    )


def _figure(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
