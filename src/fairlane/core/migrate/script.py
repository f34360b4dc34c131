"""What would be run, as text for psql or a tool of your own."""

from collections.abc import Iterator, Sequence

from fairlane.core.migrate.applying import CHECK_LATER
from fairlane.core.migrate.books import BOOKS, MORE_BOOKS, Plan
from fairlane.core.migrate.connection import LOCK_TIMEOUT
from fairlane.core.migrate.files import REPEATABLE, Migration, Source


def script(plan: Plan, files: Source) -> Iterator[str]:
    yield "-- Run it with: psql --set ON_ERROR_STOP=on"
    yield f"set lock_timeout = '{LOCK_TIMEOUT}';\n"
    yield BOOKS if plan.books else MORE_BOOKS
    *stages, last = plan.stages()
    for stage in stages:
        yield from _together(stage) if stage[0].in_transaction else _texts(stage)
    yield from _together(last, files if plan.repeatable else None)


def _together(migrations: Sequence[Migration], files: Source | None = None) -> Iterator[str]:
    yield "begin;\n"
    yield from _texts(migrations)
    if files is not None:
        yield f"-- {REPEATABLE}\n{CHECK_LATER}"
        for name, text in files.repeatable:
            yield f"-- {name}\n{text.rstrip()}\n"
        yield files.record
    yield "commit;\n"


def _texts(migrations: Sequence[Migration]) -> Iterator[str]:
    for migration in migrations:
        yield f"-- {migration.name}\n{migration.text.rstrip()}\n\n{migration.record}"
