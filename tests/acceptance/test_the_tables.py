"""Every line of a checklist names a test that is there, and every test stands in a table."""

import re

import pytest

from acceptance.stage import ROOT

NAME = re.compile(r"`(test_\w+?)(?:\[.*?\])?`")
EXAMPLES = ["breakthevibe", "dartwing", "docverse", "housefit"]  # zoltag has a page of its own


@pytest.fixture
def example(request: pytest.FixtureRequest) -> str:
    """Its name; nothing is started here."""
    return str(request.param)


@pytest.fixture(autouse=True)
def no_worker_outlives_its_test() -> None:
    pass


@pytest.mark.parametrize("example", EXAMPLES, indirect=True)
def test_the_tables_of_an_example_name_its_tests_and_no_others(example: str) -> None:
    page = (ROOT / f"tests/acceptance/test_{example}.py").read_text()
    there = set(re.findall(r"^def (test_\w+)", page, re.M))
    told = set(NAME.findall((ROOT / f"examples/{example}/README.md").read_text()))
    [section] = re.findall(
        rf"^## {example}\n(.*?)(?=^## |\Z)", (ROOT / "docs/examples.md").read_text(), re.M | re.S
    )

    assert told == there
    assert set(NAME.findall(section)) == there
