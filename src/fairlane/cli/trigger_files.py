"""`fairlane triggers apply`: triggers by a file."""

from typing import TYPE_CHECKING

import click

from fairlane.cli import params
from fairlane.cli.applying import carry_out, file_options, form_of, tell_faults, wrong_call
from fairlane.cli.session import Session, actor, with_database
from fairlane.cli.trigger_runs import triggers

if TYPE_CHECKING:
    from fairlane.scheduler.file import Written


@triggers.command()
@file_options
@params.json_option
@with_database
async def apply(
    db: Session, /, file: str, dry_run: bool, yes: bool, form: str | None, as_json: bool
) -> None:
    """Bring triggers to what a file says: all of it, or none if anything in it is wrong.

    A list under `triggers`, each with its tenant; a trigger is known by tenant and label.
    """
    from fairlane.scheduler import file as files

    written = await _read(db, file, form_of(file, form))
    await carry_out(
        await files.apply(db.conn, written, keep=False),
        lambda: files.apply(db.conn, written, actor=actor(), keep=True),
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


async def _read(db: Session, path: str, form: str) -> "list[Written]":
    """The triggers of a file, or every fault of it on stderr."""
    from fairlane.definitions.file import File, contents, document
    from fairlane.errors import Faulty
    from fairlane.scheduler import file as files

    file = File("stdin" if path == "-" else path, [])
    try:
        name, data = contents(path)
        held, lines = document(data, form, name)
        file = File(name, [], [], lines)
        return await files.read(db.conn, held, name)
    except OSError as error:
        raise wrong_call(f"{path}: {error.strerror or error}") from None
    except Faulty as error:
        if not error.faults:
            raise
        tell_faults(error, file)
        raise click.exceptions.Exit(1) from None
