"""No value of a payload becomes an option, another argument or anything for a shell (S12, S13,
S16): by generated values, against the parsers that programs really use."""

import argparse
import contextlib
import getopt
import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.executors.command.argv import ArgumentsRefused
from fairlane.scheduler.template import FieldMissing, Template
from unit.test_argv import ATOMS
from unit.test_argv import settings as read

FEW, MANY = 400, 100_000
QUICK = settings(max_examples=FEW, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=MANY, deadline=None, suppress_health_check=list(HealthCheck))
SHELL = ("$(id)", "`id`", ";id", "|id", "&&id", "\nid", "--checkpoint-action=exec=id", "-oProxy=id")
VALUES = st.one_of(
    st.text(max_size=30),
    st.lists(st.sampled_from((*ATOMS, *SHELL)), max_size=8).map("".join),
    st.sampled_from(SHELL),
)
COMMAND = read(
    "--name={payload.a}", "-n", "{payload.b}", {"each": "{payload.c}"}, "--", "{payload.d}"
)


def parsed_by_argparse(argv: list[str]) -> tuple[str, str, list[str]]:
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=True)
    parser.add_argument("--name")
    parser.add_argument("-n")
    parser.add_argument("--exec")
    parser.add_argument("-o")
    parser.add_argument("rest", nargs="*")
    with contextlib.redirect_stderr(io.StringIO()):
        found, odd = parser.parse_known_args(argv)
    assert found.exec is None
    assert found.o is None
    assert odd == []
    return found.name, found.n, found.rest


def parsed_by_getopt(argv: list[str]) -> tuple[str, str, list[str]]:
    options, rest = getopt.gnu_getopt(argv, "n:o:x", ["name=", "exec=", "checkpoint-action="])
    assert [name for name, _ in options] == ["--name", "-n"]
    return options[0][1], options[1][1], rest


def check(a: str, b: str, c: list[str], d: str) -> None:
    try:
        argv = COMMAND.argv.build({"payload": {"a": a, "b": b, "c": c, "d": d}})
    except ArgumentsRefused:
        return
    assert argv == ["tool", f"--name={a}", "-n", b, *c, "--", d]
    assert parsed_by_getopt(argv[1:]) == (a, b, [*c, d])
    # Of `--name=--` argparse of Python 3.11 makes an empty list: its own mistake, and no way out of
    # the argument.
    if a != "--":
        assert parsed_by_argparse(argv[1:]) == (a, b, [*c, d])


@QUICK
@given(VALUES, VALUES, st.lists(VALUES, max_size=3), VALUES)
def test_a_value_is_what_it_is_to_every_parser(a: str, b: str, c: list[str], d: str) -> None:
    check(a, b, c, d)


@pytest.mark.scene_long
@pytest.mark.timeout(1200)
@LONG
@given(VALUES, VALUES, st.lists(VALUES, max_size=3), VALUES)
def test_a_hundred_thousand_times_as_well(a: str, b: str, c: list[str], d: str) -> None:
    check(a, b, c, d)


# Templates of triggers: lookups, and nothing else.
WORDS = (
    *("{{", "}}", "event", "tenant", ".", "a", "b", "0", " ", "__class__", "__init__", "mro"),
    *("()", "[0]", "|", "7*7", "'", "%", "{%", "#", "config", "self", "lambda", "\n", "${", "<%="),
)
EVENT = {"a": "A", "b": {"a": [1, "{{event.a}}"]}, "__class__": "a plain key", "0": "zero"}
WHO = {"event": EVENT, "tenant": {"slug": "acme", "id": "1", "name": "A"}}
LOOKED_UP = ("A", "acme", "1", "a plain key", "zero", "{{event.a}}")


def only_looks_up(text: str) -> None:
    try:
        value: Any = Template({"v": text}).render(WHO)["v"]
    except FieldMissing:
        return
    if not isinstance(value, str) or value in LOOKED_UP:
        return
    # What is left when the placeholders are taken out is left as it stands, and nothing is added.
    for found in (*LOOKED_UP, '{"', "[1"):
        value = value.replace(found, "")
    assert "49" not in value or "49" in text
    assert "<class" not in value
    assert "object at" not in value


@QUICK
@given(st.lists(st.sampled_from(WORDS), max_size=10).map("".join))
def test_a_template_looks_up_and_computes_nothing(text: str) -> None:
    only_looks_up(text)


@pytest.mark.scene_long
@pytest.mark.timeout(1200)
@LONG
@given(st.lists(st.sampled_from(WORDS), max_size=10).map("".join))
def test_nor_in_a_hundred_thousand(text: str) -> None:
    only_looks_up(text)
