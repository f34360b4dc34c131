"""The page on schemas tells the truth: what it says is switched off is refused."""

import json
import re
from pathlib import Path

import pytest

from fairlane import schemas
from fairlane.errors import DefinitionInvalid
from fairlane.schemas import cost, guard, patterns, telling

PAGE = Path(__file__).parents[3].joinpath("docs", "schemas.md").read_text()
SECTION = PAGE.partition("## What we switch off and why")[2]
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| `(\{.+\})` \|$", SECTION, re.MULTILINE)


@pytest.mark.parametrize(("what", "why", "example"), ROWS, ids=[row[0] for row in ROWS])
def test_what_is_switched_off_is_refused(what: str, why: str, example: str) -> None:
    assert why
    with pytest.raises(DefinitionInvalid):
        schemas.compile(json.loads(example), payload=True)


def test_every_row_of_the_table_has_an_example() -> None:
    lines = [line for line in SECTION.splitlines() if line.startswith("|")]

    assert len(ROWS) == len(lines) - 2 > 10


def test_the_numbers_on_the_page_are_the_ones_in_force() -> None:
    text = " ".join(SECTION.split())

    assert f"{patterns.LARGEST // 1024} KiB when compiled, or {patterns.LONGEST:,} char" in text
    assert f"more than {cost.MOST:,} times" in text
    assert f"at most {guard.SIZE // 1024} KiB, is nested at most {guard.DEPTH} deep" in text
    assert f"at most {guard.PATTERNS} different patterns" in text
    assert f"at most {guard.STRUCTURED} objects and arrays" in text
    assert telling.MOST == 50
    assert "at most fifty places" in PAGE
