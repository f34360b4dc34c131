"""The arguments that several commands share, and what they accept."""

import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import click

F = TypeVar("F", bound=Callable[..., Any])
Parse = Callable[[str], Any]

INT4 = 2**31 - 1
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
FARTHEST = timedelta(days=36_500)

# What a person gives to take a limit away; not giving it at all changes nothing.
NONE = object()


def option(*names: str, parse: Parse, metavar: str, help: str) -> Callable[[F], F]:  # noqa: A002
    """An option whose text `parse` reads; its ValueError says what was wrong."""
    return click.option(*names, callback=_callback(parse), metavar=metavar, help=help)


def argument(name: str, *, parse: Parse, required: bool = True) -> Callable[[F], F]:
    return click.argument(name, callback=_callback(parse), required=required)


def _callback(parse: Parse) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")


def page_options(command: F) -> F:
    """--limit and --cursor, as every list of any length has them."""
    limit = click.option(
        "--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Rows a page."
    )
    cursor = click.option("--cursor", help="Go on where the last page ended.")
    return limit(cursor(command))


def job_id(text: str) -> UUID:
    from fairlane.errors import IdInvalid
    from fairlane.ids import parse_id

    try:
        return parse_id(text)
    except IdInvalid as error:
        raise ValueError(str(error)) from None


def limit(least: int = 0) -> Parse:
    """A whole number, or "none" for no limit."""

    def parse(text: str) -> Any:
        if text.lower() == "none":
            return NONE
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not least <= int(text) <= INT4:
            raise ValueError(f'"{text}": give a whole number of {least} or more, or none')
        return int(text)

    return parse


def weight(text: str) -> Any:
    if text.lower() == "none":
        return NONE
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1000:
        raise ValueError(f'"{text}": give a number above 0 and up to 1000')
    return number


def moment(text: str) -> datetime | timedelta:
    """A time with its offset, or a length of time from now."""
    if relative := re.fullmatch(r"\+([0-9]{1,12})([smhd])", text):
        number, unit = int(relative[1]), UNITS[relative[2]]
        if number <= FARTHEST / timedelta(**{unit: 1}):
            return timedelta(**{unit: number})
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        given = None
    if given is None or given.tzinfo is None:
        raise ValueError(
            f'"{text}" is not a time: give one like 2030-01-31T18:00:00Z, '
            "or one from now like +90s, +5m, +2h, +1d"
        )
    return given


def new_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", text):
        raise ValueError(
            f'"{text}" is not usable: give 1 to 63 of a-z, 0-9, "-" and "_", '
            "starting with a letter or digit"
        )
    return text


def payload(text: str) -> dict[str, Any]:
    """A JSON object that the database can hold; "-" reads it from stdin."""
    import msgspec

    from fairlane.core import json
    from fairlane.errors import PayloadInvalid

    source = sys.stdin.buffer.read() if text == "-" else text
    try:
        given = json.loads(source)
        json.check(given, "the payload")
    except (msgspec.DecodeError, RecursionError, PayloadInvalid) as error:
        raise ValueError(f"not usable as JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError("a payload is a JSON object, like '{\"report_id\": 7}'")
    return given


def changes_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, as the database takes it; refuses a call that changes nothing."""
    changes = given_of(options)
    if not changes:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"nothing to set; give one of {names}", click.get_current_context())
    return changes


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if value is NONE else value
        for name, value in options.items()
        if value is not None
    }
