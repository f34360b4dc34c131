"""Metrics and the alert rules for Prometheus, from the catalogue that exposes them."""

from docsite.reference.words import cell, code, table
from fairlane.metrics.catalogue import CATALOGUE


def page() -> str:
    lines = [
        "# Metrics",
        "",
        "What they mean together, who may read them, and how to scale by them: "
        "[Metrics](../metrics.md).",
    ]
    lines += table(
        ("metric", "kind", "labels", "where", "what"),
        (
            (
                code(metric.name),
                metric.kind,
                " ".join(map(code, metric.labels)),
                ", ".join(metric.parts),
                cell(metric.help),
            )
            for metric in CATALOGUE.values()
        ),
    )
    return "\n".join(lines)
