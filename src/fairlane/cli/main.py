"""`fairlane`: finds the command, runs it, and turns what goes wrong into one line and a status."""

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from fairlane.errors import FairlaneError

FAILED = 1
WRONG_CALL = 2
INTERRUPTED = 130

# In the order that a newcomer meets them. A module is imported when its command is asked for.
COMMANDS = {
    "up": "fairlane.cli.up:up",
    "server": "fairlane.cli.server:server",
    "worker": "fairlane.cli.worker:worker",
    "scheduler": "fairlane.cli.scheduler:scheduler",
    "migrate": "fairlane.cli.migrate:migrate",
    "enqueue": "fairlane.cli.enqueue:enqueue",
    "jobs": "fairlane.cli.job_logs:jobs",
    "dead": "fairlane.cli.dead:dead",
    "operations": "fairlane.cli.operations:operations",
    "tenants": "fairlane.cli.tenants:tenants",
    "plans": "fairlane.cli.plans:plans",
    "queues": "fairlane.cli.queues:queues",
    "definitions": "fairlane.cli.definitions:definitions",
    "triggers": "fairlane.cli.trigger_files:triggers",
    "events": "fairlane.cli.events:events",
    "tokens": "fairlane.cli.tokens:tokens",
    "workers": "fairlane.cli.workers:workers",
    "top": "fairlane.cli.top:top",
    "ops": "fairlane.cli.ops:ops",
    "usage": "fairlane.cli.usage:usage",
    "alerts": "fairlane.cli.alert_rules:alerts",
    "metrics": "fairlane.cli.metrics:metrics",
    "doctor": "fairlane.cli.doctor:doctor",
    "bench": "fairlane.cli.bench:bench",
}


# What comes with an extra alone: a worker's install stays small.
EXTRAS = {
    "fastapi": "server",
    "httptools": "server",
    "jinja2": "server",
    "jwt": "server",
    "multipart": "server",
    "starlette": "server",
    "uvicorn": "server",
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from fairlane.cli.summaries import SUMMARIES

        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


def _version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from fairlane.version import VERSION

        click.echo(f"fairlane {VERSION}")
        ctx.exit()


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
@click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    help="Show a traceback when something goes wrong; anywhere on the line.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Fairlane: a multi-tenant job platform on Python and PostgreSQL.

    The database is FAIRLANE_DATABASE_URL, else DATABASE_URL, else the one that `fairlane up` runs.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one call and answer its exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    # Who wants a traceback adds it at the end of the line that failed.
    if debug := "--debug" in args:
        args.remove("--debug")
    try:
        _refuse_broken_text(args)
        answer = cli.main(args, prog_name="fairlane", standalone_mode=False)
        return answer if isinstance(answer, int) else 0
    except (KeyboardInterrupt, click.Abort):
        return _tell("interrupted", INTERRUPTED)
    except Exception as error:
        if debug and not isinstance(error, click.ClickException):
            import traceback

            traceback.print_exc()
            return FAILED
        return _tell(*_in_words(error))


def _in_words(error: Exception) -> tuple[str, int]:
    match error:
        case click.UsageError():
            where = f"; see: {error.ctx.command_path} --help" if error.ctx else ""
            return f"{error.format_message().rstrip('.')}{where}", WRONG_CALL
        case click.ClickException():
            return error.format_message(), error.exit_code
        case FairlaneError():
            return str(error), FAILED
        case ModuleNotFoundError() if extra := EXTRAS.get((error.name or "").split(".")[0]):
            said = f"{error.name} is not installed, which this command needs"
            return f"{said}; run: pip install 'fairlane[{extra}]'", FAILED
        case _ if getattr(error, "sqlstate", None) == "42501":
            return f"{error}; connect as the owner of the schema, who ran fairlane migrate", FAILED
        case _:
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return f"{said}; add --debug to see where", FAILED


def _tell(message: str, status: int) -> int:
    """One line to stderr, whatever the message holds."""
    line = " ".join(message.split())
    click.echo(f"fairlane: {line}", err=True)
    return status


def _refuse_broken_text(args: Sequence[str]) -> None:
    for arg in args:
        try:
            arg.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"{arg!r} is not valid UTF-8") from None
