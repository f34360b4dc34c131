"""The command line, as `--help` tells it."""

from inspect import cleandoc

import click

from docsite.reference.words import cell, code, table
from fairlane.cli.main import cli


def page() -> str:
    lines = [
        "# Command line",
        "",
        "Exit status 0 is success, 1 a failure of what was asked, 2 a wrong call. Errors are one "
        "line on standard error; `--debug`, anywhere on the line, adds the traceback.",
        "",
        *_section(cli, "fairlane", None),
    ]
    return "\n".join(lines)


def _section(
    command: click.Command, path: str, parent: click.Context | None, level: int = 2
) -> list[str]:
    ctx = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    usage = " ".join([path, *command.collect_usage_pieces(ctx)])
    lines = [
        f"{'#' * level} `{path}`",
        "",
        *_prose(cleandoc(command.help or "")),
        "",
        "```text",
        usage,
        "```",
    ]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        lines += table(("option", ""), (_option(option, ctx) for option in options))
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            if inner is not None and not inner.hidden:
                lines += ["", *_section(inner, f"{path} {name}", ctx, min(level + 1, 4))]
    return lines


def _option(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    record = option.get_help_record(ctx)
    names, about = record or (", ".join(option.opts), option.help or "")
    return code(names), cell(about)


def _prose(text: str) -> list[str]:
    """Help as paragraphs; what click was told not to wrap stays as it is."""
    found: list[str] = []
    for part in text.split("\n\n"):
        kept = part.startswith("\b")
        lines = part.removeprefix("\b").strip("\n").splitlines()
        found += ["", *(f"    {line}" for line in lines)] if kept else ["", _plain(" ".join(lines))]
    return found


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")
