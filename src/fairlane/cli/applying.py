"""A file is applied: what is wrong with it, what would become of things, and who is asked first."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from fairlane.cli import params
from fairlane.cli.render import clean, cut, print_json

if TYPE_CHECKING:
    from fairlane.definitions.differences import Difference
    from fairlane.definitions.file import File
    from fairlane.errors import Faulty

SIGNS = {"created": "+", "changed": "~", "same": "="}
VALUE = 200


class Change(Protocol):
    """What becomes of one thing that a file names."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def differences(self) -> "Sequence[Difference]": ...
    @property
    def warnings(self) -> Sequence[str]: ...
    def as_dict(self) -> dict[str, Any]: ...


def file_options(command: params.F) -> params.F:
    """What every command takes that applies a file."""
    for decorate in (
        click.option(
            "--format",
            "form",
            type=click.Choice(["yaml", "toml", "json"]),
            help="Where the file's name does not say; stdin is YAML.",
        ),
        click.option("--yes", is_flag=True, help="Do not ask; only a terminal is asked at all."),
        click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
        click.argument("file", metavar="FILE|-"),
    ):
        command = decorate(command)
    return command


async def carry_out(
    planned: Sequence[Change],
    apply: Callable[[], Awaitable[Sequence[Change]]],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show what would change, ask where there is somebody to ask, and do it."""
    changes = planned
    if not as_json:
        print_plan(planned)
    if dry_run:
        click.echo("nothing was changed: this was a dry run", err=True)
    else:
        is_news = any(each.kind != "same" for each in planned)
        if is_news and not yes and not as_json and _at_a_terminal():
            _agree()
        changes = await apply()
    if as_json:
        print_json({"items": [each.as_dict() for each in changes], "dry_run": dry_run})


def form_of(path: str, form: str | None) -> str:
    """The format of a file: what was said, or what its name promises."""
    from fairlane.definitions.file import format_of

    found = form or ("yaml" if path == "-" else format_of(path))
    if found is None:
        raise wrong_call(f"{path}: name it .yaml, .yml, .toml or .json, or give --format")
    return found


def wrong_call(why: str) -> click.UsageError:
    return click.UsageError(why, click.get_current_context())


def tell_faults(error: "Faulty", file: "File") -> None:
    """One line a fault, with its place."""
    faults = error.faults
    if len(faults) > 1:
        click.echo(f"fairlane: {file.name}: {len(faults)} faults, nothing was changed", err=True)
    end = "; nothing was changed" if len(faults) == 1 else ""
    for fault in faults:
        told = clean(str(fault) if fault.pointer else fault.message)
        click.echo(f"fairlane: {file.place(fault.pointer)}: {told}{end}", err=True)


def print_plan(changes: Sequence[Change]) -> None:
    for each in changes:
        print_change(each)
    counts = {kind: sum(each.kind == kind for each in changes) for kind in SIGNS}
    click.echo(", ".join(f"{count} {kind}" for kind, count in counts.items()))


def print_change(change: Change) -> None:
    click.echo(f"{SIGNS[change.kind]} {clean(change.name)}: {change.kind}")
    for pointer, old, new in change.differences:
        click.echo(f"    {clean(pointer)}: {value(old)} → {value(new)}")
    for warning in change.warnings:
        click.echo(f"    note: {clean(warning)}")


def value(given: Any) -> str:
    return cut(clean(given), VALUE)


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _agree() -> None:
    if not click.confirm("Apply this?"):
        click.echo("nothing was changed", err=True)
        raise click.exceptions.Exit(1)
