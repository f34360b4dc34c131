"""Metrics as Prometheus reads them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairlane.metrics.catalogue import CATALOGUE
from fairlane.metrics.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Page:
    """Collects samples by name; each name must be in the catalogue, with all its labels."""

    _lines: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, value: float, /, *labels: str) -> None:
        self._line(name, name, zip(CATALOGUE[name].labels, labels, strict=True), value)

    def histogram(self, name: str, labels: Iterable[str], found: Histogram) -> None:
        named = list(zip(CATALOGUE[name].labels, labels, strict=True))
        reached = 0
        for bound, count in zip((*found.bounds, math.inf), found.counts, strict=True):
            reached += count
            self._line(name, f"{name}_bucket", [*named, ("le", _number(bound))], reached)
        self._line(name, f"{name}_sum", named, found.total)
        self._line(name, f"{name}_count", named, reached)

    def _line(
        self, name: str, sample: str, labels: Iterable[tuple[str, str]], value: float
    ) -> None:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
        line = f"{sample}{{{told}}} {_number(value)}" if told else f"{sample} {_number(value)}"
        self._lines.setdefault(name, []).append(line)

    def text(self, names: Iterable[str]) -> str:
        """Those that were asked for; one that has no sample yet is told of, too."""
        found = []
        for name in names:
            metric = CATALOGUE[name]
            found += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
            found += self._lines.get(name, ())
        return "\n".join(found) + "\n"


def names_of(part: str) -> list[str]:
    return [name for name, metric in CATALOGUE.items() if part in metric.parts]


def flag(value: object) -> float:
    return 1.0 if value else 0.0


def states(page: Page, name: str, labels: tuple[str, ...], found: Mapping[str, float]) -> None:
    for state, value in found.items():
        page.add(name, value, *labels, state)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
