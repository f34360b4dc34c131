"""The map of the code is true: every path it names is there, and every folder is on it."""

import re

import pytest

from deploy.files import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
MADE = {".venv"}  # by make
PATH = re.compile(
    r"`((?:src|tests|docs|deploy|examples|benchmarks|\.ci|\.venv)(?:/[\w./-]+)?"
    r"|[A-Z]+\.md)(?:::\w+)?`"
)


@pytest.mark.parametrize("path", sorted(set(PATH.findall(TEXT)) - MADE))
def test_what_the_map_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_folder_of_the_package_is_on_the_map() -> None:
    folders = {path.parent for path in (ROOT / "src" / "fairlane").glob("*/__init__.py")}
    missing = {each.name for each in folders if f"`src/fairlane/{each.name}`" not in TEXT}
    assert missing == {"system"}  # Fairlane's own jobs, which are alerts on their way


def test_the_one_test_it_tells_how_to_run_is_there() -> None:
    ((path, name),) = re.findall(r"pytest (tests/\S+)::(\w+)", TEXT)
    assert f"def {name}(" in (ROOT / path).read_text()
