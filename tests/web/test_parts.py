"""Filters, charts, links and the budget of scripts: what needs no server."""

import re
import shlex
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest

from deploy.files import parsed
from fairlane.web import charts
from fairlane.web.filters import Tokens
from fairlane.web.preferences import Preferences
from fairlane.web.statics import Statics, stripped
from fairlane.web.urls import Urls
from fairlane.web.words import duration

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_words_in_the_bar_and_the_query_are_the_same_filter() -> None:
    typed = Tokens.of_text('state:failed state:dead kind:"sync crm" since:2h time out')
    assert typed.query == {
        "state": "failed,dead",
        "kind": "sync crm",
        "since": "2h",
        "q": "time out",
    }
    assert Tokens.of_query(typed.values) == typed
    assert Tokens.of_text(typed.text) == typed
    wanted = typed.conditions(NOW)
    assert wanted.status == ("failed", "dead_letter")
    assert wanted.created_after == datetime(2026, 11, 16, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["state:nothing", "since:soon", "from:never", "source:me"])
def test_a_part_that_does_not_parse_is_told_and_left_out(text: str) -> None:
    tokens = Tokens.of_text(text)
    assert list(tokens.faults) == [text.partition(":")[0]]
    assert tokens.conditions(NOW).is_empty


def test_charts_escape_have_no_style_and_bring_their_numbers() -> None:
    drawn = charts.lines("<b>", ["a", "b", "c"], [charts.Series("<i>", [1, 2, 3])], filled=True)
    assert "<b>" not in drawn
    assert "<i>" not in drawn
    assert "style=" not in drawn
    assert "<td>3</td>" in drawn
    with pytest.raises(ValueError, match="120"):
        charts.sparkline([0] * 121)


def test_links_are_escaped_below_their_root() -> None:
    urls = Urls({"job": "/t/{tenant}/jobs/{job}"})
    assert urls.path("/ops", "job", "a/b", 7, tab=None, state=["x", "y&z"]) == (
        "/ops/t/a%2Fb/jobs/7?state=x,y%26z"
    )


def test_a_cookie_that_somebody_wrote_is_the_default() -> None:
    assert Preferences.of("theme=evil&zone=../x&density=<b>") == Preferences()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.42, "420 ms"), (48, "48 s"), (192, "3 min 12 s"), (7500, "2 h 5 min"), (273600, "3 d 4 h")],
)
def test_durations_have_their_unit(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_scripts_are_sent_without_comments_and_strings_stay_as_they_are() -> None:
    written = """// why
/** @param {string} text */
export function f(text) {
  // a line
  const url = "https://x/*y*/"; /* between */ return `
  // kept ${text}`;

}
"""
    assert stripped(written) == (
        "export function f(text) {\n"
        'const url = "https://x/*y*/";   return `\n  // kept ${text}`;\n}\n'
    )


def test_all_scripts_together_stay_small_and_import_nothing_from_elsewhere() -> None:
    folder = files("fairlane.web") / "static"
    scripts = [each.read_text() for each in folder.iterdir() if each.name.endswith(".js")]
    assert sum(text.count("\n") for text in scripts) <= 1500
    assert sum(Statics().sizes(".js").values()) <= 12 * 1024, "as they are sent"
    for text in scripts:
        assert all(found.startswith("./") for found in re.findall(r'from "([^"]+)"', text))


def test_the_commands_that_pages_show_are_commands() -> None:
    """The page of somebody with no jobs yet said `fairlane worker tasks:app`, which is none."""
    lines = {
        line
        for page in Path(str(files("fairlane.web") / "templates")).rglob("*.html")
        for line in re.findall(r"<(?:pre|code)[^>]*>fairlane ([^<…]+)</", page.read_text())
    }
    assert len(lines) >= 5
    for line in lines:
        parsed(shlex.split(re.sub(r"{{ [^}]*name }}={{ [^}]*slots }}", "default=8", line)))
