"""`fairlane definitions`: what may run."""

import click

from fairlane.cli import params
from fairlane.cli.render import print_fields, print_json, print_table
from fairlane.cli.session import Session, with_database

DEFINITIONS = """
select id, key, version, description, executor, settings, arg_schema, result_schema, queue,
       timeout_seconds, max_attempts, retry_delays, max_running, max_running_per_tenant,
       starts_per_minute, reuse, dead_letter, redact, is_active, created_at, updated_at
  from fairlane.definition
"""


@click.group(no_args_is_help=False)
def definitions() -> None:
    """The kinds of jobs that may run."""


@definitions.command("list")
@click.option("--all", "every", is_flag=True, help="Also those that are switched off.")
@params.json_option
@with_database
async def list_definitions(db: Session, /, every: bool, as_json: bool) -> None:
    """List definitions, newest version first."""
    from fairlane.cli.shapes import definition, page

    rows = await db.fetch(
        f"{DEFINITIONS} where is_active or $1 order by key, version_order desc, created_at desc",
        every,
    )
    if as_json:
        print_json(page([definition(row) for row in rows]))
        return
    print_table(
        ["KEY", "VERSION", "EXECUTOR", "QUEUE", "TIMEOUT", "TRIES", "STATE", "DESCRIPTION"],
        [
            [
                row["key"],
                row["version"],
                row["executor"],
                row["queue"],
                f"{row['timeout_seconds']}s" if row["timeout_seconds"] else "queue's",
                row["max_attempts"] or "queue's",
                "active" if row["is_active"] else "off",
                row["description"],
            ]
            for row in rows
        ],
        empty="no definitions; define one with @app.job and run a worker with --app",
    )


@definitions.command()
@click.argument("key")
@click.option("--version", metavar="V", help="The newest active one if not given.")
@params.json_option
@with_database
async def show(db: Session, /, key: str, version: str | None, as_json: bool) -> None:
    """Show one definition."""
    from fairlane.cli.shapes import definition
    from fairlane.errors import DefinitionNotFound

    rows = await db.fetch(
        f"""{DEFINITIONS}
         where key = $1 and ($2::text is null or version = $2)
         order by is_active desc, version_order desc, created_at desc
         limit 1
        """,
        key,
        version,
    )
    if not rows:
        which = f'"{key}"' + (f" version {version}" if version else "")
        raise DefinitionNotFound(
            f"definition {which} is unknown; see: fairlane definitions list --all"
        )
    shown = definition(rows[0])
    if as_json:
        print_json(shown)
    else:
        print_fields(shown)
