"""The parts of a long run: all that it is to show is in one of them, and what falls short of it
shows nothing."""

import sys
from pathlib import Path

import pytest

from faults import __main__ as program
from faults import parts
from faults.account import Account
from faults.verdict import GREEN, INVALID, Verdict

LONG = parts.long(seed=1, rate=1, shrink=0)


def ran(seed: int, fired: int) -> Verdict:
    """A run in which so many faults were seen to work."""
    return Verdict([Account(seed, False, {"cut": fired}, {"cut": fired}, {}, 9, 9, {})])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where parts are kept. None of them is there."""
    monkeypatch.setattr(program, "BUILD", tmp_path)
    monkeypatch.setattr(sys, "argv", ["faults", "--long", "--parts", "none"])
    (tmp_path / "long").mkdir()
    return tmp_path / "long"


def kept(folder: Path, fired: int, *but: str) -> None:
    """Every part is there but these, and so many faults in each run."""
    for nth, part in enumerate(part for part in LONG if part.name not in but):
        came = ran(nth, fired) if part.is_run else Verdict()
        (folder / f"{part.name}.json").write_text(came.text())


def test_the_runs_of_a_long_one_are_its_seeds_and_what_is_calm_and_played_again() -> None:
    runs = [part.name for part in LONG if part.is_run]
    assert runs == [*(f"seed-{n}" for n in range(1, 6)), "calm", "again"]


def test_a_thousand_faults_in_runs_make_a_long_one(folder: Path) -> None:
    kept(folder, 150)
    assert program.main() == GREEN


def test_a_long_one_with_fewer_is_invalid_and_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(folder, 100)
    assert program.main() == INVALID
    said = "INVALID: only 700 faults were seen to work in its runs; a long one has 1,000"
    assert said in capsys.readouterr().out


def test_what_is_not_all_there_is_not_called_too_few(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(folder, 100, "seed-3")
    assert program.main() == INVALID
    said = capsys.readouterr().out
    assert "INVALID: the part seed-3 is not there" in said
    assert "were seen to work" not in said


def test_the_attacks_of_a_long_one_are_those_of_make_test_long_and_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It left out what is marked slow, which is what most attacks are: they had no row."""
    asked: list[list[str]] = []

    class Ended:
        returncode = 0

    def run(words: list[str], **_: object) -> Ended:
        asked.append(words)
        return Ended()

    monkeypatch.setattr("faults.parts.subprocess.run", run)
    monkeypatch.setattr(parts, "BUILD", tmp_path)
    (attacks,) = [part for part in LONG if part.name == "attacks"]
    attacks.play(Verdict())
    (words,) = asked
    marked = words[words.index("-m", words.index("pytest")) + 1]
    assert set(marked.split(" or ")) == {"slow", "scene", "scene_long"}
    assert str(parts.ATTACKS) in words
