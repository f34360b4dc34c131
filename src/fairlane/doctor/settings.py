"""The settings in force, where each came from, and no secret among them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from fairlane import secrets
from fairlane.config import Settings
from fairlane.executors.command.environment import PATH_SETTING
from fairlane.executors.http.reach import ALLOW

HIDDEN = "***"
SECRET = ("secret_key", "smtp_password")

# What workers and servers read from the environment alone, and what holds where it is not set.
ELSEWHERE = {
    ALLOW: "anywhere",
    secrets.DIRECTORY: None,
    PATH_SETTING: "the system's",
}


@dataclass(frozen=True)
class Setting:
    name: str
    value: str | None
    source: str


def settings_in_force(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> list[Setting]:
    """Every setting and where it came from; what is secret stays so."""
    shown = {name: getattr(settings, name) for name in settings.sources}
    if settings.database_url is not None:
        shown["database_url"] = without_password(settings.database_url)
    for name in SECRET:
        if shown[name] is not None:
            shown[name] = HIDDEN
    found = [Setting(name, _text(value), settings.sources[name]) for name, value in shown.items()]
    return found + _of_the_environment(os.environ if environ is None else environ)


def _of_the_environment(env: Mapping[str, str]) -> list[Setting]:
    from fairlane.api.limits import VARIABLES, Limits

    defaults: dict[str, str | None] = dict(ELSEWHERE)
    for name, (variable, _) in VARIABLES.items():
        defaults[variable] = _text(float(getattr(Limits(), name)))
    return [
        Setting(
            variable.removeprefix("FAIRLANE_").lower(),
            env.get(variable) or default,
            variable if env.get(variable) else "default",
        )
        for variable, default in defaults.items()
    ]


def _text(value: Any) -> str | None:
    match value:
        case None:
            return None
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def without_password(url: str) -> str:
    """A URL that may be shown: a password may stand before the host or in the query."""
    parts = urlsplit(url)
    who, at, host = parts.netloc.rpartition("@")
    user, colon, _ = who.partition(":")
    secret = ("password", "passfile", "sslpassword", "sslkey")
    query = [
        (name, HIDDEN if name.lower() in secret else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    shown = f"{parts.scheme}://{user}{colon and f':{HIDDEN}'}{at}{host}{parts.path}"
    return f"{shown}?{urlencode(query, quote_via=quote, safe='/*')}" if query else shown
