"""docs/faults.md: a row for every fault of the survey, and all that it names is there."""

import re
from pathlib import Path

from faults.broken import BUILDS as IN_RUNS
from faults.builds.mistakes import BUILDS as MISTAKES
from faults.kinds import LASTS

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "faults.md").read_text()
ROW = re.compile(r"^\| F(\d+) \| ([^|]+) \| ([^|]*) ?\| ([^|]*) ?\|$", re.MULTILINE)
ROWS = {int(number): (played, why) for number, _, played, why in ROW.findall(PAGE)}
NAMED = {name for played, _ in ROWS.values() for name in re.findall(r"`([^`]+)`", played)}
FILES = {name.partition("::")[0] for name in NAMED if "/" in name}


def test_every_fault_has_its_row_and_is_played_or_says_why_not() -> None:
    assert re.findall(r"^\| F(\d+) ", PAGE, re.MULTILINE) == [str(n) for n in range(1, 46)]
    assert list(ROWS) == list(range(1, 46))
    assert [n for n, (played, why) in ROWS.items() if not played.strip() and not why.strip()] == []


def test_every_file_and_every_test_on_the_page_is_there() -> None:
    assert len(FILES) > 30
    assert [name for name in FILES if not (TESTS / name).is_file()] == []
    tests = [name.split("::") for name in NAMED if "::" in name]
    assert [
        f"{file}::{test}"
        for file, test in tests
        if not re.search(rf"^(async )?def {test}\(", (TESTS / file).read_text(), re.MULTILINE)
    ] == []


def test_every_kind_of_fault_and_every_scene_is_on_the_page() -> None:
    assert {name for name in NAMED if "/" not in name} == set(LASTS)
    scenes = {
        f"faults/{path.name}"
        for path in Path(__file__).parent.glob("test_*.py")
        if re.search("^from faults.scene import scene$", path.read_text(), re.MULTILINE)
    }
    assert scenes - FILES == {"faults/test_harness.py"}


def test_what_catches_the_broken_builds_is_told() -> None:
    """Fourteen mistakes of others and three of our own, of which these need no order of steps."""
    text = " ".join(PAGE.split())
    direct = [each.name for each in MISTAKES if "interleaved" not in each.check.__qualname__]
    assert (len(IN_RUNS), len(MISTAKES), len(direct)) == (4, 17, 7)
    assert [name for name in direct if name not in text] == []
