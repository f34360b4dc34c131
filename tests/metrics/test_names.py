"""One list of metrics: what is exposed, documented, charted and alerted on agrees with it."""

import re
from pathlib import Path

import pytest

from fairlane.metrics.catalogue import CATALOGUE, COUNTER, HISTOGRAM
from fairlane.metrics.dashboards import DASHBOARDS
from fairlane.metrics.rules import MAIN, RULES
from fairlane.metrics.text import Page

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
NAME = re.compile(r"fairlane_[a-z_]+")
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def named(text: str) -> set[str]:
    """The metrics that an expression reads."""
    found = set()
    for name in NAME.findall(text):
        base = SUFFIX.sub("", name)
        is_part = base in CATALOGUE and CATALOGUE[base].kind == HISTOGRAM
        found.add(base if is_part else name)
    return found


def test_a_counter_says_so_by_its_name() -> None:
    for metric in CATALOGUE.values():
        assert (metric.kind == COUNTER) == metric.name.endswith("_total"), metric.name


def test_the_docs_have_a_row_for_every_metric_and_no_other() -> None:
    rows = re.findall(
        r"^\| `(fairlane_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$",
        DOCS.read_text(),
        re.MULTILINE,
    )
    told = {
        name: (kind, tuple(NAMES.findall(labels)), tuple(parts.split(", ")), text)
        for name, kind, labels, parts, text in rows
    }
    assert told == {
        name: (metric.kind, metric.labels, metric.parts, metric.help)
        for name, metric in CATALOGUE.items()
    }


NAMES = re.compile(r"`(\w+)`")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_reads_metrics_that_there_are(rule: object) -> None:
    assert named(getattr(rule, "expr")) <= set(CATALOGUE)  # noqa: B009


def test_a_main_gauge_that_vanishes_is_told_of() -> None:
    assert {f"absent({name})" for name in MAIN} <= {rule.expr for rule in RULES}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_reads_metrics_that_there_are(name: str) -> None:
    dashboard = DASHBOARDS[name]()
    assert dashboard["uid"] == f"fairlane-{name}"
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert named(" ".join(expressions)) <= set(CATALOGUE)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in dashboard["panels"])


def test_every_metric_of_the_installation_is_on_a_chart_or_in_a_rule() -> None:
    charts = [
        target["expr"]
        for make in DASHBOARDS.values()
        for panel in make()["panels"]
        for target in panel["targets"]
    ]
    used = named(" ".join([*charts, *(rule.expr for rule in RULES)]))
    assert set(CATALOGUE) - used == {
        "fairlane_build_info",  # the dashboards' annotations read it
        "fairlane_queue_paused",
        "fairlane_audit_checks_total",
        "fairlane_scheduler_leads",
    }


def test_a_sample_without_its_labels_cannot_be_told() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Page().add("fairlane_queue_depth", 1)
    with pytest.raises(KeyError):
        Page().add("fairlane_made_up", 1)


def test_labels_are_escaped() -> None:
    page = Page()
    page.add("fairlane_queue_depth", 1, 'a"b\\c\nd')
    assert 'queue="a\\"b\\\\c\\nd"' in page.text(["fairlane_queue_depth"])
