"""Settings, by what reads them."""

from docsite.reference.words import cell, code, table
from fairlane import config
from fairlane.api import limits


def page() -> str:
    lines = [
        "# Configuration",
        "",
        "The environment first, then `fairlane.toml` in the working directory, then the default; "
        "a wrong value is refused at the start with its name and what was expected. `fairlane "
        "doctor` shows what is in force and where each value came from.",
        "",
        "## Settings of every process",
        "",
        "The name in `fairlane.toml` is the variable's without `FAIRLANE_`, in lower case.",
    ]
    lines += table(
        ("variable", "default", "what it is"),
        (
            (
                " or ".join(code(variable) for variable in setting.variables),
                _default(name),
                cell(setting.about),
            )
            for name, setting in config.SETTINGS.items()
        ),
    )
    lines += ["## Settings of one part", "", "These come from the environment alone."]
    lines += table(
        ("variable", "default", "what it is"),
        ((code(name), default, cell(about)) for name, default, about in _elsewhere()),
    )
    return "\n".join(lines)


def _default(name: str) -> str:
    value = getattr(config.Settings(), name)
    return "" if value in (None, {}, ()) else code(str(value))


def _elsewhere() -> list[tuple[str, str, str]]:
    found = [
        (variable, code(f"{getattr(limits.Limits(), name):g}"), limits.ABOUT[name])
        for name, (variable, _) in limits.VARIABLES.items()
    ]
    return [
        *found,
        ("FAIRLANE_HTTP_ALLOW", "", "workers: the hosts that http jobs may call; any if not set"),
        ("FAIRLANE_SECRETS_DIR", "", "workers: a folder with a file for each `{secret.NAME}`"),
        ("FAIRLANE_SECRET_NAME", "", "workers: the value of `{secret.name}`, without a folder"),
        ("FAIRLANE_COMMAND_PATH", "`PATH`", "workers: where commands are looked for"),
        (
            "FAIRLANE_PG_BINDIR",
            "",
            "the programs of a PostgreSQL for `fairlane up`, not the wheel's",
        ),
        ("FAIRLANE_PG_USER", "", "who runs that PostgreSQL where `fairlane up` is root's"),
        ("FAIRLANE_TEST_DATABASE_URL", "", "`fairlane.testing`: the server of its databases"),
    ]
