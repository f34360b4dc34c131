"""docs/security.md: a row for every threat, and every test that it names is there."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "security.md"


def test_every_threat_has_its_row() -> None:
    rows = re.findall(r"^\| S(\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, 33))


def test_every_test_on_the_page_is_there_and_every_attack_is_on_it() -> None:
    named = set(re.findall(r"`([a-z_/]+/test_[a-z_]+\.py)`", PAGE.read_text()))
    assert len(named) > 30
    assert [name for name in named if not (TESTS / name).exists()] == []
    ours = {f"attacks/{path.name}" for path in (TESTS / "attacks").glob("test_*.py")}
    assert ours - named == {"attacks/test_page.py"}
