"""Reading a page of metrics as Prometheus does."""

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Scrape:
    samples: Mapping[tuple[str, Labels], float]
    names: frozenset[str]  # of samples

    @classmethod
    def of(cls, text: str) -> "Scrape":
        found = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        return cls(found, frozenset(name for name, _ in found))

    def __call__(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]

    def all(self, name: str, **labels: str) -> dict[Labels, float]:
        """Every sample of the name that has these labels."""
        wanted = frozenset(labels.items())
        return {of: v for (each, of), v in self.samples.items() if each == name and wanted <= of}
