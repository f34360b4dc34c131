"""What calls may connect to: checked on the address itself, at the moment of connecting."""

import errno
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.errors import ConfigError
from fairlane.executors.http.addresses import Network, set_aside
from fairlane.executors.http.refusal import CallRefused

ALLOW = "FAIRLANE_HTTP_ALLOW"

_HOST = re.compile(
    r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_-]*[a-z_][a-z0-9_-]*\Z"
)


class AddressRefused(OSError):
    """An address that this call may not connect to."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EACCES, why)


@dataclass(frozen=True)
class Reach:
    """The addresses that a call may connect to."""

    private: bool = False  # also those that are not public
    networks: tuple[Network, ...] | None = None  # only these; None: wherever they are

    def refusal(self, host: str) -> str | None:
        """Why an address is out of reach, if it is."""
        address = ipaddress.ip_address(host.partition("%")[0])
        if not self.private and (what := set_aside(address)):
            return f"{address} is not a public address ({what}); allow_private: true allows it"
        if self.networks is not None and not any(address in network for network in self.networks):
            return f"{address} is not in {ALLOW}"
        return None

    def open_socket(self, info: Any) -> socket.socket:
        """The last word: nothing is connected to but what passes here."""
        family, kind, protocol, _, address = info
        if why := self.refusal(str(address[0])):
            raise AddressRefused(why)
        opened = socket.socket(family, kind, protocol)
        # A receiver that has gone without a word would otherwise hold a long call to its deadline.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, seconds in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
            if hasattr(socket, option):
                opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
        return opened


class AllowList:
    """Where this installation's calls may go: names, `*.example.com`, addresses, networks."""

    def __init__(self, entries: Sequence[str] | None = None) -> None:
        self._anywhere = entries is None
        self._hosts: set[str] = set()
        self._suffixes: list[str] = []
        self._networks: list[Network] = []
        for entry in entries or ():
            self._add(entry.lower())

    @classmethod
    def parse(cls, text: str | None) -> "AllowList":
        """From FAIRLANE_HTTP_ALLOW; without it, anywhere."""
        entries = re.split(r"[,\s]+", (text or "").strip(" \t\r\n,"))
        return cls(entries if entries != [""] else None)

    def _add(self, entry: str) -> None:
        try:
            self._networks.append(ipaddress.ip_network(entry.strip("[]")))
        except ValueError:
            if not _HOST.match(entry):
                expected = "hosts (app.example, *.example) and networks (10.1.0.0/16), with commas"
                raise ConfigError(ALLOW, expected, got=repr(entry)) from None
            if entry.startswith("*."):
                self._suffixes.append(entry[1:])
            else:
                self._hosts.add(entry)

    def reach(self, host: str, *, private: bool) -> Reach:
        """How far a call to this host may reach."""
        name = host.strip("[]").rstrip(".").lower()
        if self._anywhere or name in self._hosts or name.endswith(tuple(self._suffixes)):
            return Reach(private)
        if not self._networks:
            raise CallRefused(f"{host} is not in {ALLOW}")
        return Reach(private, tuple(self._networks))
