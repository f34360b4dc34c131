"""What people see: lines that fit, columns that stand straight, nothing that moves a terminal."""

import logging
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from fairlane.cli import render
from fairlane.config import Settings
from fairlane.core import json
from fairlane.observe.about import Named, about
from fairlane.observe.logs import log_to_stderr

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (True, "yes"),
        (False, "no"),
        (7, "7"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b[31mred\x07", "\N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}"),
        ("txt.\u202eexe", "txt.\N{REPLACEMENT CHARACTER}exe"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        (datetime(2030, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "2030-01-01 00:00:00 UTC"),
    ],
)
def test_a_value_is_one_line_that_can_do_nothing(value: object, shown: str) -> None:
    assert render.clean(value) == shown


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "now"),
        (5, "5s ago"),
        (119, "119s ago"),
        (150, "2m ago"),
        (3 * 3600, "3h ago"),
        (3 * 86_400, "3d ago"),
        (-90, "in 90s"),
        (-600, "in 10m"),
    ],
)
def test_a_time_is_said_as_people_say_it(seconds: float, said: str) -> None:
    assert render.ago(NOW - timedelta(seconds=seconds), NOW) == said


def test_columns_stand_straight_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    render.print_table(["NAME", "N"], [["日本", 1], ["café", 2], ["cafe\u0301", 3]], empty="none")

    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "NAME  N"
    assert [row[:-1].rstrip() for row in rows] == ["日本", "café", "cafe\u0301"]
    assert [render.width(row) for row in rows] == [7, 7, 7]


def test_a_line_is_cut_at_the_edge_and_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert render.cut("abcdef", 6) == "abcdef"
    assert render.cut("abcdefg", 6) == "abcde…"
    assert render.width(render.cut("日本語のテキスト", 6)) <= 6
    assert render.cut("a" * 500, None) == "a" * 500


def test_a_pipe_gets_whole_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    render.print_table(["A"], [["x" * 300]], empty="none")

    assert capsys.readouterr().out.splitlines()[1] == "x" * 300


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    return logging.getLogger("fairlane.test")


def test_log_lines_for_programs_are_json(
    capsys: pytest.CaptureFixture[str], logs: logging.Logger
) -> None:
    log_to_stderr(Settings(log_format="json"))
    attempt = Named("j1", "acme", "a.task", 2, "c1")
    logs.info("%s and\nmore", "one", extra={**about(attempt), "n": 1})
    try:
        raise ValueError("bad")
    except ValueError:
        logs.exception("it broke")

    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first["message"] == "one and\nmore"
    named = {"job_id": "j1", "tenant": "acme", "definition_key": "a.task", "attempt": 2}
    assert {**named, "cid": "c1", "fields": {"n": 1}}.items() <= first.items()
    assert (first["level"], first["logger"]) == ("info", "fairlane.test")
    assert first["at"].endswith("Z")
    assert "ValueError: bad" in second["exception"]


def test_log_lines_for_people_say_whose_job_it_is(
    capsys: pytest.CaptureFixture[str], logs: logging.Logger
) -> None:
    log_to_stderr(Settings(log_level="warning"))
    logs.info("not this")
    logs.warning("slow", extra=about(Named("j1", "acme", "a.task", 2, None)))

    line = capsys.readouterr().err
    named = "job_id=j1 tenant=acme definition_key=a.task attempt=2 cid=j1"
    assert line.endswith(f"WARNING fairlane.test: slow {named}\n")
    assert line.count("\n") == 1
    assert sys.stderr.isatty() is False


def test_what_uvicorn_says_in_colours_is_said_once(
    capsys: pytest.CaptureFixture[str], logs: logging.Logger
) -> None:
    log_to_stderr(Settings())
    logs.info("process [%d]", 7, extra={"color_message": "process [\x1b[36m%d\x1b[0m]"})

    assert capsys.readouterr().err.endswith("fairlane.test: process [7]\n")
