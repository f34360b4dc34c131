"""A bar that is missed says what stands in its way, and which decision tells of it."""

import re
from pathlib import Path

from benchmarks.report.bars import bars
from benchmarks.report.lines import Results
from benchmarks.report.reasons import REASONS, why

DOCS = Path(__file__).parents[2] / "docs"

# Nothing that was decided lets a worker grow.
FAULTS = {"memory of a worker, MB", "its memory in the last tenth over the first"}
NAMES = {bar.name for bar in bars(Results([], []))}


def test_each_bar_that_a_decision_may_miss_has_its_reason() -> None:
    assert set(REASONS) == NAMES - FAULTS


def test_a_reason_is_one_sentence_with_a_link_that_leads_somewhere() -> None:
    for name in REASONS:
        sentence = why(name)
        (target,) = re.findall(r"\((adr/[^)]+)\)\)\.$", sentence)
        assert (DOCS / target).is_file()
        assert ". " not in sentence


def test_what_no_decision_tells_of_is_called_a_fault() -> None:
    assert "it is a fault" in why("memory of a worker, MB")
