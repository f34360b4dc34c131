"""What somebody likes: theme, time zone, density, shortcuts. In a cookie, so that it needs no
account and holds in every tenant."""

from dataclasses import asdict, dataclass
from urllib.parse import parse_qsl, urlencode
from zoneinfo import ZoneInfo, available_timezones

COOKIE = "fairlane_prefs"
THEMES = ("system", "light", "dark")
DENSITIES = ("normal", "compact")
LOCAL = "local"  # the browser's own zone


@dataclass(frozen=True)
class Preferences:
    theme: str = "system"
    zone: str = LOCAL
    density: str = "normal"
    keys: str = "on"

    @classmethod
    def of(cls, cookie: str | None) -> "Preferences":
        """What the cookie says; anything that is not a choice is the default."""
        said = dict(parse_qsl((cookie or "")[:500]))
        return cls(
            theme=_one(said.get("theme"), THEMES),
            zone=said["zone"] if _is_zone(said.get("zone")) else LOCAL,
            density=_one(said.get("density"), DENSITIES),
            keys=_one(said.get("keys"), ("on", "off")),
        )

    @property
    def cookie(self) -> str:
        return urlencode(asdict(self))

    @property
    def tz(self) -> ZoneInfo:
        """What times are written in before the browser knows better."""
        return ZoneInfo("UTC" if self.zone == LOCAL else self.zone)


def _one(said: str | None, choices: tuple[str, ...]) -> str:
    return said if said in choices else choices[0]


def _is_zone(said: str | None) -> bool:
    return said == LOCAL or said in available_timezones()
