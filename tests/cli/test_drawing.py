"""How far a job is, as a person at a terminal sees it."""

import sys
from typing import Any
from uuid import UUID

import click
import pytest
from psycopg.types.json import Jsonb

from cli.calling import Call
from fairlane.cli.drawing import Screen, drawn
from fairlane.cli.main import cli
from fairlane.ids import short_id, uuid7

ITEMS = {
    "total": 12,
    "counts": {"in_progress": 7, "completed": 4, "failed": 1},
    "in_progress": list("abcdefg"),
    "completed": ["w", "x"],
    "failed": [{"name": "z", "error": "no\x1b[2J luck"}],
}


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (None, ""),
        ({"done": 3, "total": 12}, "[#####...............] 3/12 25%"),
        ({"done": 12, "total": 12}, "[####################] 12/12 100%"),
        ({"done": 5}, "5"),
        ({"done": 0, "total": 0}, "0"),
        ({"done": 9, "total": 3}, "[####################] 9/3 100%"),
        ({"done": "x", "total": None, "message": "a\nb"}, "a b"),
        ({"message": "going", "files": 3}, "going  files=3"),
        (
            {"done": 1, "total": 2, "items": ITEMS},
            "[##########..........] 1/2 50%  items: 4 of 12 completed, 1 failed, "
            "7 in progress: a, b, c, d, e, ...",
        ),
    ],
)
def test_progress_is_drawn_in_a_line(progress: dict[str, Any] | None, line: str) -> None:
    assert drawn(progress) == line


def test_on_a_terminal_the_last_line_is_drawn_over(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    screen = Screen()
    screen.tell(["running"])
    assert screen.draw("1/3")
    assert not screen.draw("1/3")
    assert screen.draw("2/3")
    screen.tell(["running", "done"])
    assert capfd.readouterr().err == "running\n1/3\r\x1b[2K2/3\r\x1b[2Kdone\n"


def test_a_job_is_shown_with_its_items(fairlane: Call, floor: Any, acme: str) -> None:
    job = fairlane("enqueue", "a.task", "--tenant", acme).out.strip()
    floor.claim(floor.worker("w1"))
    floor.fetch(
        "update fairlane.job set progress = %s where id = %s",
        Jsonb({"done": 1, "total": 2, "items": ITEMS}),
        UUID(job),
    )
    shown = fairlane("jobs", "show", job).out
    assert "progress        [##########..........] 1/2 50%  items: 4 of 12 completed" in shown
    assert shown.splitlines()[-4:] == [
        "  completed    w",
        "  completed    x",
        "  completed    ... and 2 more",
        "  failed       z: no\N{REPLACEMENT CHARACTER}[2J luck",
    ]
    assert fairlane("jobs", "show", job, "--json").json["progress"]["items"]["total"] == 12


def commands_about_an_id() -> list[list[str]]:
    found = []

    def walk(command: click.Command, words: list[str]) -> None:
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                child = command.get_command(click.Context(command), name)
                assert child is not None
                walk(child, [*words, name])
        elif any(each.name in ("job_id", "trigger_id") for each in command.params):
            found.append(words)

    walk(cli, [])
    return found


def test_every_command_about_an_id_tells_a_mistyped_one(fairlane: Call, acme: str) -> None:
    short = short_id(uuid7())
    mistyped = short[:10] + ("1" if short[10] != "1" else "2") + short[11:]
    commands = commands_about_an_id()
    assert len(commands) >= 15
    for words in commands:
        answer = fairlane(*words, mistyped)
        assert answer.status == 2, words
        assert "is mistyped: its check symbol does not fit" in answer.line, words
