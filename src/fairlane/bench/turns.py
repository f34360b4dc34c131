"""Two sides that take turns, so that what slows the machine down slows both."""

from dataclasses import dataclass, field
from statistics import median


@dataclass
class Sides:
    """Figures of both sides, one of each a round."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def add(self, ours: float, theirs: float) -> None:
        self.ours.append(ours)
        self.theirs.append(theirs)

    @property
    def ratio(self) -> float:
        """The median of the rounds' own ratios: a slow round is slow for both its sides."""
        return median(o / t for o, t in zip(self.ours, self.theirs, strict=True))

    @property
    def medians(self) -> tuple[float, float]:
        return median(self.ours), median(self.theirs)
