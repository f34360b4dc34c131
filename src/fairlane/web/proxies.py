"""How the browser sees this server: behind a proxy that is trusted, as the proxy says."""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from starlette.requests import Request

from fairlane.config import Settings

_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_HOST = re.compile(r"[A-Za-z0-9.\-:\[\]]{1,255}")


@dataclass(frozen=True)
class Front:
    """Where the browser finds the pages."""

    scheme: str
    host: str
    root: str
    """The path in front of every link: "" or "/ops/jobs"."""

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def address(self) -> str:
        return f"{self.scheme}://{self.host}{self.root}"


def front_of(request: Request, settings: Settings) -> Front:
    scheme = request.url.scheme
    host = request.headers.get("host", "")
    root = str(request.scope.get("root_path", "")).rstrip("/")
    if _is_trusted(request.client.host if request.client else "", settings.trusted_proxies):
        said = request.headers.get("x-forwarded-proto", "").split(",")[0].strip()
        scheme = said if said in ("http", "https") else scheme
        named = request.headers.get("x-forwarded-host", "").split(",")[0].strip()
        host = named if _HOST.fullmatch(named) else host
        prefix = request.headers.get("x-forwarded-prefix", "").split(",")[0].strip().rstrip("/")
        if prefix and _PREFIX.fullmatch(prefix) and not root.startswith(prefix):
            root = prefix + root
    if settings.base_url is not None:
        # What the operator of the installation says stands above what a request does.
        base = urlsplit(settings.base_url)
        scheme, host = base.scheme, base.netloc
        root = base.path.rstrip("/") + root.removeprefix(base.path.rstrip("/"))
    return Front(scheme, host, root)


@lru_cache(maxsize=1024)
def _is_trusted(client: str, trusted: tuple[str, ...]) -> bool:
    if "*" in trusted:
        return True
    try:
        address = ip_address(client)
    except ValueError:
        return False
    return any(address in ip_network(each) for each in trusted if each != "*")
