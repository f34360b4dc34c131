"""What somebody likes: theme, time zone, density, columns, shortcuts. In a cookie, so that it needs
no account and holds in every tenant."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from urllib.parse import parse_qsl, urlencode
from zoneinfo import ZoneInfo, available_timezones

COOKIE = "fairlane_prefs"
THEMES = ("system", "light", "dark")
DENSITIES = ("normal", "compact")
# Of lists of jobs; the state and the kind are always there.
COLUMNS = {
    "id": "Id",
    "queue": "Queue",
    "priority": "Priority",
    "progress": "Progress",
    "attempt": "Attempt",
    "created": "Created",
    "source": "Source",
    "correlation": "Correlation",
    "worker": "Worker",
}
USUAL = "id,queue,progress,attempt,created,worker"
LOCAL = "local"  # the browser's own zone


@dataclass(frozen=True)
class Preferences:
    theme: str = "system"
    zone: str = LOCAL
    density: str = "normal"
    keys: str = "on"
    columns: str = USUAL
    """Names with commas between them; in a list they stand in the order of COLUMNS."""

    @classmethod
    def of(cls, cookie: str | None) -> "Preferences":
        """What the cookie says; anything that is not a choice is the default."""
        said = dict(parse_qsl((cookie or "")[:500], keep_blank_values=True))
        return cls(
            theme=_one(said.get("theme"), THEMES),
            zone=said["zone"] if _is_zone(said.get("zone")) else LOCAL,
            density=_one(said.get("density"), DENSITIES),
            keys=_one(said.get("keys"), ("on", "off")),
            columns=columns_of(said.get("columns", USUAL).split(",")),
        )

    def has(self, column: str) -> bool:
        return column in self.columns.split(",")

    @property
    def cookie(self) -> str:
        return urlencode(asdict(self))

    @property
    def tz(self) -> ZoneInfo:
        """What times are written in before the browser knows better."""
        return ZoneInfo("UTC" if self.zone == LOCAL else self.zone)


def columns_of(names: Sequence[str]) -> str:
    """Those that there are, each once."""
    return ",".join(column for column in COLUMNS if column in names)


def _one(said: str | None, choices: tuple[str, ...]) -> str:
    return said if said in choices else choices[0]


def _is_zone(said: str | None) -> bool:
    return said == LOCAL or said in available_timezones()
