"""SQL: the functions that callers lean on and the views, as their files say."""

import re
from importlib.resources import files

# What callers lean on, in the order a reader meets it. The rest of fairlane.* is how it works.
VERBS = {
    "Producers": ("enqueue", "enqueue_many", "emit", "emit_many"),
    "Jobs": ("cancel", "retry", "explain"),
    "Dead letters": ("replay", "resolve", "ignore"),
    "Tenants, plans, queues": (
        "create_tenant", "set_tenant", "pause_tenant", "resume_tenant",
        "set_plan", "set_queue", "pause_queue", "resume_queue",
    ),
    "Definitions": ("define", "apply_definitions", "set_definition", "reset_definition"),
    "Workers": (
        "register_worker", "claim", "heartbeat", "report", "finish", "fail", "snooze",
        "canceled", "bounce", "hand_back", "stop_worker",
    ),
    "Ids, secrets, time": (
        "clock", "short_id", "parse_id", "redacted", "secret_paths", "unredacted",
    ),
    "Autoscaling, repair": (
        "wanted_slots", "regate", "audit_counts", "grant_access", "grant_producer",
    ),
}  # fmt: skip

FUNCTION = re.compile(
    r"((?:^--[^\n]*\n)*)^create (?:or replace )?function fairlane\.(\w+)\s*(.*?)^language",
    re.M | re.S,
)
VIEW = re.compile(r"((?:^--[^\n]*\n)*)^create (?:or replace )?view fairlane\.(\w+)", re.M)


def page() -> str:
    functions = _found(FUNCTION, "functions") | _found(FUNCTION, ".")
    lines = [
        "# SQL",
        "",
        "Any driver, any language, inside any transaction. Errors have SQLSTATEs of class `LN` "
        "([the list](python.md#errors)). Who may call what: [Access](../access.md).",
    ]
    for title, names in VERBS.items():
        lines += ["", f"## {title}"]
        for name in names:
            about, signature = functions[name]
            lines += [
                "",
                f"### `{name}`",
                "",
                about,
                "",
                "```sql",
                f"fairlane.{name}{signature}",
                "```",
            ]
    lines += ["", "## Views"]
    for name, (about, _) in sorted(_found(VIEW, "views").items()):
        lines += ["", f"### `{name}`", "", about]
    return "\n".join(lines)


def _found(pattern: re.Pattern[str], folder: str) -> dict[str, tuple[str, str]]:
    """Each name's comment and signature."""
    found: dict[str, tuple[str, str]] = {}
    for file in sorted(files("fairlane").joinpath("sql", folder).iterdir(), key=lambda f: f.name):
        if file.name.endswith(".sql"):
            for comment, name, *rest in pattern.findall(file.read_text()):
                # One function may have several shapes; the first file's comment speaks for all.
                found.setdefault(name, (_prose(comment), rest[0].rstrip() if rest else ""))
    return found


def _prose(comment: str) -> str:
    text = " ".join(line.removeprefix("--").strip() for line in comment.splitlines())
    return text.replace("<", "&lt;").replace("*", "\\*")
