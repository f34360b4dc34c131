"""Settings: the environment first, then fairlane.toml, then defaults."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fairlane.errors import ConfigError

FILE = "fairlane.toml"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is in force, and in `sources` where each value came from."""

    database_url: str | None = field(default=None, repr=False)
    home: Path = Path(".fairlane")
    secret_key: str | None = field(default=None, repr=False)
    log_format: str = "console"
    log_level: str = "info"
    payload_limit: int = 262_144
    lease_seconds: float = 15
    poll_seconds: float = 1
    grace_seconds: float = 30
    # A port for the metrics of a worker or scheduler: none until it is named. See docs/metrics.md.
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_token: str | None = field(default=None, repr=False)
    metrics_tenants: int = 20
    # Sign-in by OpenID Connect: off until an issuer is named. See docs/access.md.
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_jwks_url: str | None = None
    oidc_tenant_claim: str = "tenant"
    oidc_role_claim: str = "role"
    oidc_roles: Mapping[str, str] = field(default_factory=dict)
    # Where a trace is looked at, with {trace_id} in it. See docs/observing.md.
    trace_url: str | None = None
    # For sign-in on the web pages; the client is the audience where none is named.
    oidc_client_id: str | None = None
    oidc_client_secret: str | None = field(default=None, repr=False)
    # The web pages behind a proxy. See docs/web.md.
    base_url: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    # Mail of alerts; workers send it. See docs/alerts.md.
    smtp_host: str | None = None
    smtp_port: int | None = None
    smtp_user: str | None = None
    smtp_password: str | None = field(default=None, repr=False)
    smtp_from: str = "fairlane@localhost"
    smtp_security: str = "starttls"
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def trace_link(self, trace_id: str | None) -> str | None:
        """Where that trace is looked at, if anywhere."""
        if self.trace_url is None or trace_id is None:
            return None
        return self.trace_url.replace("{trace_id}", trace_id)


def load(environ: Mapping[str, str] | None = None, directory: Path | None = None) -> Settings:
    """Read the settings as a process started in `directory` sees them."""
    env = os.environ if environ is None else environ
    folder = Path.cwd() if directory is None else directory
    file = _read(folder / FILE)

    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, setting in SETTINGS.items():
        variable = next((v for v in setting.variables if env.get(v)), None)
        if variable is not None:
            values[name] = setting.parse(variable, env[variable])
            sources[name] = variable
        elif name in file:
            values[name] = setting.parse(f"{name} in {FILE}", file[name])
            sources[name] = FILE
        else:
            sources[name] = "default"

    if "oidc_issuer" in values and "oidc_audience" not in values:
        # Without one, a token that the provider gave to any other application would open this one.
        raise ConfigError("FAIRLANE_OIDC_AUDIENCE", "set where FAIRLANE_OIDC_ISSUER is")

    home = folder / values.get("home", Settings.home).expanduser()
    return Settings(**{**values, "home": home, "sources": sources})


def _read(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(FILE, f"readable ({error.strerror})") from None
    except ValueError as error:
        raise ConfigError(FILE, f"valid TOML ({error})") from None
    for key in values:
        if key not in SETTINGS:
            raise ConfigError(f"{key} in {FILE}", f"one of {', '.join(SETTINGS)}")
    return values


Parse = Callable[[str, Any], Any]


def postgres_url(name: str, value: Any) -> str:
    # What was given is never repeated: it may hold a password, wherever it is misplaced.
    expected = "a URL like postgresql://user:password@host:5432/database"
    if not isinstance(value, str) or "://" not in value:
        raise ConfigError(name, expected)
    scheme, rest = value.strip().split("://", 1)
    # SQLAlchemy names its driver after a plus; every driver reads the URL without it.
    dialect = scheme.lower().partition("+")[0]
    if dialect not in ("postgres", "postgresql"):
        raise ConfigError(name, expected, got=f"{dialect}://..." if dialect.isalpha() else None)
    url = f"postgresql://{rest}"
    try:
        user, at, hosts = urlsplit(url).netloc.rpartition("@")
        for host in hosts.split(","):  # several, of which the first that fits is taken
            _ = urlsplit(f"//{user}{at}{host}").port
    except ValueError:
        raise ConfigError(name, expected) from None
    return url


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(name, "a text")
    return value


def _web_url(name: str, value: Any) -> str:
    text = _text(name, value)
    parts = urlsplit(text)
    here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or parts.scheme not in (("http", "https") if here else ("https",)):
        raise ConfigError(name, "a URL like https://id.example.com", got=repr(value))
    return text


def _trace_url(name: str, value: Any) -> str:
    text = _text(name, value)
    parts = urlsplit(text)
    # It becomes a link on pages: nothing that a browser would run.
    if parts.scheme not in ("http", "https") or not parts.hostname or "{trace_id}" not in text:
        expected = "a URL like https://traces.example.com/trace/{trace_id}"
        raise ConfigError(name, expected, got=repr(value))
    return text


def _roles(name: str, value: Any) -> dict[str, str]:
    """{"theirs": "ours"}, or the same as text: staff=admin,everyone=viewer."""
    known = ("viewer", "member", "admin", "operator", "worker")
    expected = f"pairs like staff=admin,everyone=viewer, of {', '.join(known)}"
    if isinstance(value, str):
        pairs = [pair.partition("=") for pair in value.split(",")]
        value = {theirs.strip(): ours.strip() for theirs, _, ours in pairs}
    if not isinstance(value, dict) or "" in value:
        raise ConfigError(name, expected)
    for ours in value.values():
        if ours not in known:
            raise ConfigError(name, expected, got=repr(ours))
    return value


def _addresses(name: str, value: Any) -> tuple[str, ...]:
    """Addresses or networks, as a list or with commas; "*" is anybody."""
    found = value.split(",") if isinstance(value, str) else value
    expected = "addresses like 10.0.0.1,10.1.0.0/16, or *"
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ConfigError(name, expected, got=repr(value))
    texts = tuple(each.strip() for each in found)
    for each in texts:
        try:
            each == "*" or ip_network(each)
        except ValueError:
            raise ConfigError(name, expected, got=repr(each)) from None
    return texts


def _path(name: str, value: Any) -> Path:
    return Path(_text(name, value))


def _one_of(*choices: str) -> Parse:
    def parse(name: str, value: Any) -> str:
        if str(value).lower() not in choices:
            raise ConfigError(name, " or ".join(choices), got=repr(value))
        return str(value).lower()

    return parse


def _number(kind: type[int] | type[float], expected: str, least: float, most: float) -> Parse:
    def parse(name: str, value: Any) -> float:
        try:
            number = kind(value)
        except (TypeError, ValueError):
            number = None
        lossy = isinstance(value, bool) or (isinstance(value, float) and number != value)
        if number is None or lossy or not least <= number <= most:
            raise ConfigError(name, expected, got=repr(value))
        return number

    return parse


@dataclass(frozen=True)
class Setting:
    """How one setting is read, and what the reference says of it."""

    parse: Parse
    variables: tuple[str, ...]
    about: str


SETTINGS = {
    "database_url": Setting(
        postgres_url,
        ("FAIRLANE_DATABASE_URL", "DATABASE_URL"),
        "where the jobs are; without it, the server that `fairlane up` runs",
    ),
    "home": Setting(_path, ("FAIRLANE_HOME",), "the embedded server's data"),
    "secret_key": Setting(
        _text, ("FAIRLANE_SECRET_KEY",), "signs webhooks and calls; the same in every process"
    ),
    "log_format": Setting(
        _one_of("console", "json"),
        ("FAIRLANE_LOG_FORMAT",),
        "lines for people, or one JSON object a line",
    ),
    "log_level": Setting(
        _one_of("debug", "info", "warning", "error"),
        ("FAIRLANE_LOG_LEVEL",),
        "debug, info, warning or error",
    ),
    "payload_limit": Setting(
        _number(int, "a number of bytes from 1 to 268435456", 1, 2**28),
        ("FAIRLANE_PAYLOAD_LIMIT",),
        "the largest payload, in bytes",
    ),
    "lease_seconds": Setting(
        _number(float, "a number of seconds from 1 to 3600", 1, 3600),
        ("FAIRLANE_LEASE_SECONDS",),
        "how long a worker that says nothing keeps its jobs",
    ),
    "poll_seconds": Setting(
        _number(float, "a number of seconds from 0.01 to 3600", 0.01, 3600),
        ("FAIRLANE_POLL_SECONDS",),
        "how often an idle worker looks without having been told",
    ),
    "grace_seconds": Setting(
        _number(float, "a number of seconds from 0 to 3600", 0, 3600),
        ("FAIRLANE_GRACE_SECONDS",),
        "how long a worker that is stopped lets its jobs finish",
    ),
    "metrics_port": Setting(
        _number(int, "a port from 0 to 65535", 0, 65535),
        ("FAIRLANE_METRICS_PORT",),
        "workers, scheduler: the port of /metrics; none if not set, 0 for any",
    ),
    "metrics_host": Setting(_text, ("FAIRLANE_METRICS_HOST",), "where that port listens"),
    "metrics_token": Setting(_text, ("FAIRLANE_METRICS_TOKEN",), "who reads metrics must show it"),
    "metrics_tenants": Setting(
        _number(int, "a number of tenants from 0 to 1000", 0, 1000),
        ("FAIRLANE_METRICS_TENANTS",),
        "how many tenants have their name in labels",
    ),
    "oidc_issuer": Setting(
        _web_url, ("FAIRLANE_OIDC_ISSUER",), "sign-in by OpenID Connect, off until it is named"
    ),
    "oidc_audience": Setting(
        _text,
        ("FAIRLANE_OIDC_AUDIENCE",),
        "what its tokens must have in `aud`; needed with the issuer",
    ),
    "oidc_jwks_url": Setting(
        _web_url, ("FAIRLANE_OIDC_JWKS_URL",), "where its keys are; found out if not set"
    ),
    "oidc_tenant_claim": Setting(
        _text, ("FAIRLANE_OIDC_TENANT_CLAIM",), "the claim with the tenant's slug; dots make a path"
    ),
    "oidc_role_claim": Setting(
        _text, ("FAIRLANE_OIDC_ROLE_CLAIM",), "the claim with the role, or a list of them"
    ),
    "oidc_roles": Setting(
        _roles,
        ("FAIRLANE_OIDC_ROLES",),
        "what the provider's roles are here: staff=admin,everyone=viewer",
    ),
    "trace_url": Setting(
        _trace_url, ("FAIRLANE_TRACE_URL",), "where a trace is looked at, with {trace_id} in it"
    ),
    "oidc_client_id": Setting(
        _text,
        ("FAIRLANE_OIDC_CLIENT_ID",),
        "the client of the web pages' sign-in; the audience if not set",
    ),
    "oidc_client_secret": Setting(
        _text, ("FAIRLANE_OIDC_CLIENT_SECRET",), "its secret, where the provider wants one"
    ),
    "base_url": Setting(
        _web_url, ("FAIRLANE_BASE_URL",), "how browsers reach the web pages, behind a proxy"
    ),
    "trusted_proxies": Setting(
        _addresses,
        ("FAIRLANE_TRUSTED_PROXIES",),
        "whose X-Forwarded-* headers are believed: addresses, networks or *",
    ),
    "smtp_host": Setting(_text, ("FAIRLANE_SMTP_HOST",), "workers: the mail server for alerts"),
    "smtp_port": Setting(
        _number(int, "a port from 1 to 65535", 1, 65_535),
        ("FAIRLANE_SMTP_PORT",),
        "587, or 465 with tls, or 25 with none",
    ),
    "smtp_user": Setting(_text, ("FAIRLANE_SMTP_USER",), "where the mail server wants one"),
    "smtp_password": Setting(_text, ("FAIRLANE_SMTP_PASSWORD",), "and its password"),
    "smtp_from": Setting(_text, ("FAIRLANE_SMTP_FROM",), "who alerts come from"),
    "smtp_security": Setting(
        _one_of("starttls", "tls", "none"), ("FAIRLANE_SMTP_SECURITY",), "starttls, tls or none"
    ),
}
