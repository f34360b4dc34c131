"""What `fairlane definitions` reads from files, changes, and says of a change."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.applying import form_of, print_change, tell_faults, value, wrong_call
from fairlane.cli.render import print_json
from fairlane.cli.session import Session, actor

if TYPE_CHECKING:
    from fairlane.definitions.changes import Change
    from fairlane.definitions.check import Written


async def read(db: Session, path: str, form: str | None) -> "list[Written]":
    """The definitions of a file, or every fault of it on stderr."""
    from fairlane.definitions.check import check_all
    from fairlane.definitions.file import File, load
    from fairlane.definitions.rows import queues
    from fairlane.errors import DefinitionInvalid

    form = form_of(path, form)
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
