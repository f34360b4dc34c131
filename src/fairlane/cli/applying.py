"""What definitions would become, what is wrong with a file of them, and who is asked first."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli import params
from fairlane.cli.render import clean, cut, print_json
from fairlane.cli.session import Session, actor

if TYPE_CHECKING:
    from fairlane.definitions.changes import Change
    from fairlane.definitions.check import Written
    from fairlane.definitions.file import File
    from fairlane.errors import DefinitionInvalid

SIGNS = {"created": "+", "changed": "~", "same": "="}
VALUE = 200


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


async def apply_file(
    db: Session, path: str, form: str | None, *, dry_run: bool, ask: bool, as_json: bool
) -> None:
    from fairlane.definitions import apply

    written = await read(db, path, form)
    planned = await apply.plan(db.conn, written)
    if not as_json:
        print_plan(planned)
    if dry_run:
        changes = planned
        click.echo("nothing was changed: this was a dry run", err=True)
    else:
        if ask and not as_json and anything(planned) and at_a_terminal():
            agree()
        changes = await apply.apply(db.conn, written, planned=planned, actor=actor())
    if as_json:
        print_json({"items": [each.as_dict() for each in changes], "dry_run": dry_run})


async def read(db: Session, path: str, form: str | None) -> "list[Written]":
    """The definitions of a file, or every fault of it on stderr."""
    from fairlane.definitions.check import check_all
    from fairlane.definitions.file import File, format_of, load
    from fairlane.definitions.rows import queues
    from fairlane.errors import DefinitionInvalid

    form = form or ("yaml" if path == "-" else format_of(path))
    if form is None:
        raise wrong_call(f"{path}: name it .yaml, .yml, .toml or .json, or give --format")
    file = File("stdin" if path == "-" else path, [])
    try:
        file = load(path, form)
        if "triggers" in file.others:
            click.echo(f"{file.name}: its triggers are left as they are", err=True)
        return check_all(file.definitions, queues=await queues(db.conn), what=file.name)
    except OSError as error:
        raise wrong_call(f"{path}: {error.strerror or error}") from None
    except DefinitionInvalid as error:
        tell_faults(error, file)
        raise click.exceptions.Exit(1) from None


def wrong_call(why: str) -> click.UsageError:
    return click.UsageError(why, click.get_current_context())


def tell_faults(error: "DefinitionInvalid", file: "File") -> None:
    """One line a fault, with its place."""
    faults = error.faults
    if len(faults) > 1:
        click.echo(f"fairlane: {file.name}: {len(faults)} faults, nothing was changed", err=True)
    end = "; nothing was changed" if len(faults) == 1 else ""
    for fault in faults:
        told = clean(str(fault) if fault.pointer else fault.message)
        click.echo(f"fairlane: {file.place(fault.pointer)}: {told}{end}", err=True)


def anything(changes: "Sequence[Change]") -> bool:
    return any(each.kind != "same" for each in changes)


def at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def agree() -> None:
    if not click.confirm("Apply this?"):
        click.echo("nothing was changed", err=True)
        raise click.exceptions.Exit(1)


def print_plan(changes: "Sequence[Change]") -> None:
    for each in changes:
        print_change(each)
    counts = {kind: sum(each.kind == kind for each in changes) for kind in SIGNS}
    click.echo(f"{counts['created']} created, {counts['changed']} changed, {counts['same']} same")


def print_change(change: "Change") -> None:
    definition = change.definition
    click.echo(f"{SIGNS[change.kind]} {definition.key} {definition.version}: {change.kind}")
    for pointer, old, new in change.differences:
        click.echo(f"    {clean(pointer)}: {value(old)} → {value(new)}")
    for warning in change.warnings:
        click.echo(f"    note: {clean(warning)}")


def value(given: Any) -> str:
    return cut(clean(given), VALUE)


async def change(
    db: Session, key: str, version: str | None, changes: Mapping[str, Any], as_json: bool
) -> None:
    from fairlane.definitions import apply

    print_outcome(await apply.change(db.conn, key, version, changes, actor=actor()), as_json)


def print_outcome(change: "Change", as_json: bool) -> None:
    from fairlane.definitions.shape import to_shape

    if as_json:
        print_json(to_shape(change.definition))
    else:
        print_change(change)


async def paused_version(db: Session, key: str) -> str | None:
    """The version to resume where none is named: the one that is paused, if there is but one."""
    rows = await db.fetch(
        "select version from fairlane.definition where key = $1 and not is_active", key
    )
    if len(rows) > 1:
        versions = ", ".join(sorted(row["version"] for row in rows))
        raise wrong_call(f'"{key}" is paused in versions {versions}; give --version')
    return rows[0]["version"] if rows else None


def in_words(action: str, detail: Mapping[str, Any]) -> str:
    """A line of the audit."""
    done = action.removeprefix("definition.")
    fields = detail.get("fields", {})
    told = ", ".join(
        f"{name}: {value(field.get('old'))} → {value(field.get('new'))}" if field else name
        for name, field in fields.items()
    )
    return f"{done}; {told}" if told else done
