"""The URL of a call: its scheme, host and port are written out, values fill path and query."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from fairlane.executors.http.refusal import CallRefused
from fairlane.executors.template import Name, Template, TemplateInvalid, text_of
from fairlane.executors.values import ROOTS

LONGEST = 8_000  # characters; servers take about as many

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#\\]*)(?P<rest>.*)", re.S
)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?\Z")
_LITERAL = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*\Z")
_PORTS = {"http": 80, "https": 443}


class UrlInvalid(TemplateInvalid):
    """A URL template that no call can be made from; `faults` has all that is wrong with it."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("; ".join(faults))


class UrlTemplate:
    """A URL in which every value keeps to its path segment or its query value."""

    def __init__(self, text: str) -> None:
        found = _URL.match(text)
        if found is None or found["scheme"].lower() not in _PORTS:
            raise UrlInvalid(["a URL starts with https:// or http://, written out"])
        self.scheme = found["scheme"].lower()
        self.host, self.port = _authority(found["authority"], _PORTS[self.scheme])
        self._template = _path_and_query(found["rest"])
        path = self._template.text.partition("?")[0]
        # Templates, not values, are told in errors and logs; the query not even so, for keys of
        # other services are often written there.
        self.shown = f"{self.origin}{path}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.receiver}"

    @property
    def receiver(self) -> str:
        """The host, with its port where that is not the usual one."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def names(self) -> list[Name]:
        return self._template.names

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The address, where the host is one."""
        try:
            return ipaddress.ip_address(self.host.strip("[]"))
        except ValueError:
            return None

    def render(self, values: Mapping[str, Any]) -> str:
        path, _, query = self._rendered(values).partition("?")
        _check_segments(path)
        url = f"{self.origin}{path or '/'}{'?' if query else ''}{query}"
        if len(url) > LONGEST:
            raise CallRefused(f"the URL has {len(url)} characters, the limit is {LONGEST}")
        return url

    def _rendered(self, values: Mapping[str, Any]) -> str:
        text = ""
        for part in self._template.parts:
            if isinstance(part, str):
                text += part
                continue
            value = text_of(part, values)
            # An empty segment would make /users/{id} the address of all users.
            if value == "" and "?" not in text:
                raise CallRefused(f"{'.'.join(part)} is empty, and it stands in the path")
            text += quote(value, safe="")
        return text


def _authority(text: str, usual_port: int) -> tuple[str, int]:
    if "{" in text or "}" in text:
        raise UrlInvalid(
            ["host and port must be written out: whoever fills a payload does not choose them"]
        )
    if "@" in text:
        raise UrlInvalid(["no user and password in a URL; use a header with {secret.NAME}"])
    found = _AUTHORITY.match(text)
    if found is None:
        raise UrlInvalid([f'"{text}" is no host; write a name in ASCII (xn--...) or an address'])
    host = found["host"].lower()
    port = int(found["port"] or usual_port)
    if not 1 <= port <= 65_535:
        raise UrlInvalid([f"port {port} is out of range"])
    if fault := _fault_in_host(host):
        raise UrlInvalid([fault])
    return host, port


def _fault_in_host(host: str) -> str | None:
    try:
        if host.startswith("["):
            ipaddress.IPv6Address(host[1:-1])
        elif re.fullmatch(r"[0-9]+|0x[0-9a-f]*", host.rstrip(".").rpartition(".")[2]):
            # 127.1, 0x7f.1 and 2130706433 are spellings of an address to some, names to others.
            ipaddress.IPv4Address(host)
        elif not all(host.removesuffix(".").split(".")):
            return f'"{host}" is no host; a part of its name is empty'
    except ValueError:
        return f'"{host}" is no address in its usual spelling'
    return None


def _path_and_query(text: str) -> Template:
    if "#" in text:
        raise UrlInvalid(["a call has no fragment; leave out what starts with #"])
    try:
        template = Template(text, ROOTS)
    except TemplateInvalid as error:
        raise UrlInvalid([str(error)]) from None
    faults = []
    before = ""
    for part in template.parts:
        if isinstance(part, str):
            if not _LITERAL.match(part):
                faults.append(f'"{part}" has characters that a URL writes as %XX')
            before += part
            continue
        # Whoever fills the payload gives a parameter its value; which parameter is written out.
        if "?" in before and "=" not in before.rpartition("?")[2].rpartition("&")[2]:
            faults.append(f"{{{'.'.join(part)}}} is no query value; write name={{...}}")
        before += "x"
    if not before.startswith(("/", "?")) and before:
        faults.append("the path starts with /")
    try:
        _check_segments(before.partition("?")[0])
    except CallRefused as error:
        faults.append(str(error))
    if faults:
        raise UrlInvalid(faults)
    return template


def _check_segments(path: str) -> None:
    """No step upwards, however it is spelled: servers decode %2F before or after they look."""
    for segment in path.split("/"):
        for piece in re.split(r"[/\\]", unquote(segment)):
            if piece.partition(";")[0] in (".", ".."):
                raise CallRefused('a path has no "." or ".." in it')
