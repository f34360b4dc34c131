"""Where an HTTP job may not go, however the way there is written (S17)."""

import ipaddress
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from attacks.tally import tallied
from fairlane.errors import DefinitionInvalid
from fairlane.executors.http.calls import HttpCalls
from fairlane.executors.http.reach import Reach
from support.appserver import AppServer, app_server
from unit.test_http_settings import read
from worker.test_http import Names, an_attempt, executor, failure, named, run

HERE = (127 << 24) + 1
METADATA = (169 << 24) + (254 << 16) + (169 << 8) + 254
PRIVATE = (10 << 24) + 5


def spellings(number: int) -> Iterator[str]:
    """An IPv4 address in the ways that resolvers, browsers and libraries have been seen to take."""
    a, b, c, d = number.to_bytes(4, "big")
    yield f"{a}.{b}.{c}.{d}"
    yield f"{a}.{b}.{c}.{d}."
    yield str(number)
    yield hex(number)
    yield f"0x{number:08X}"
    yield f"0{number:o}"
    yield f"{a}.{(b << 16) + (c << 8) + d}"
    yield f"{a}.{b}.{(c << 8) + d}"
    yield f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"
    yield f"0{a:o}.0{b:o}.0{c:o}.0{d:o}"
    yield f"{a:03}.{b:03}.{c:03}.{d:03}"
    yield f"0x{a:x}.{b}.0{c:o}.{d}"
    yield f"{a}.{b}.{c}.{d + 256}"
    yield f"%3{a // 100}{a % 100}.{b}.{c}.{d}"
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    yield f"[::ffff:{a}.{b}.{c}.{d}]"
    yield f"[::ffff:{high}:{low}]"
    yield f"[0:0:0:0:0:ffff:{high}:{low}]"
    yield f"[::{high}:{low}]"
    yield f"[::{a}.{b}.{c}.{d}]"
    yield f"[64:ff9b::{high}:{low}]"
    yield f"[64:ff9b:1::{high}:{low}]"
    yield f"[2002:{high}:{low}::]"
    yield f"[2002:{high}:{low}::{high}:{low}]"
    yield f"[2001:0:{high}:{low}::1]"
    yield f"[::ffff:0:{a}.{b}.{c}.{d}]"
    yield f"[fe80::5efe:{a}.{b}.{c}.{d}]"


OTHERS = [
    *("0", "0.0.0.0", "0.0.0.1", "localhost", "LOCALHOST", "localhost.", "ip6-localhost"),
    *("[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::1%25lo]", "[::1%lo]", "[fe80::1%25eth0]"),
    *("[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]", "[100::1]", "[4000::1]"),
    *("169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "198.18.0.1"),
    *("172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "203.0.113.7", "[2001:db8::1]", "[3fff::1]", "[5f00::1]"),
    *(
        "①②⑦.⓪.⓪.①",
        "１２７.0.0.1",
        "127。0。0。1",
        "127%2e0%2e0%2e1",
        "ⓛocalhost",
        "loc\u00adalhost",
    ),
    *("127.0.0.1\u200b", "127.0.0.1%00.example", "127.0.0.1\\.example", "127.0.0.1#.example"),
]
TRICKS = [
    "http://app.example@127.0.0.1/",
    "http://app.example:80@127.0.0.1/",
    "http://127.0.0.1:80@app.example/",
    "http://app.example#@127.0.0.1/",
    "http://app.example\\@127.0.0.1/",
    "http:127.0.0.1/",
    "http:/127.0.0.1/",
    "http:\\\\127.0.0.1/",
    "http://\t127.0.0.1/",
    "http://127.0.0.1\n.example/",
    " http://127.0.0.1/",
    "http://app.example:0/",
    "http://app.example:65536/",
    "http://app.example:80:80/",
    "http://app.example:-1/",
    "http://app.example:８０/",
    "http://[::1/",
    "http://::1/",
    "http://[app.example]/",
    "//127.0.0.1/",
    "///127.0.0.1/",
    *(
        f"{scheme}://127.0.0.1/"
        for scheme in ("ftp", "file", "gopher", "dict", "ldap", "tftp", "unix", "ws", "jar", "data")
    ),
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "file:///etc/passwd",
    "https://{payload.host}/",
    "https://app.example:{payload.port}/",
    "{payload.url}",
]


def is_refused_as_written(url: str) -> bool:
    try:
        read(url=url)
    except DefinitionInvalid:
        return True
    return False


@pytest.mark.parametrize("number", [HERE, METADATA, PRIVATE], ids=["here", "metadata", "private"])
async def test_no_spelling_of_an_address_is_called(number: int) -> None:
    """Either the definition is refused, or the call is, before anything is connected to."""
    with tallied("spellings of private addresses") as tally:
        hosts = [*spellings(number), *(OTHERS if number == HERE else ())]
        for host in hosts:
            tally.injected += 1
            url = f"http://{host}:9/"
            if is_refused_as_written(url):
                tally.hold(True, "")
                continue
            outcome = await called(url)
            refused = outcome.error["type"] == "CallRefused" and outcome.final
            # Where this machine knows no such name, there is nothing to connect to.
            nowhere = "found no address of its host" in outcome.error["message"]
            tally.hold(refused or nowhere, f"{url}: {outcome.error}")


async def called(url: str, names: AbstractResolver | None = None) -> Any:
    calls = HttpCalls({}, names=names)
    try:
        server = AppServer(url.rstrip("/"), None)  # type: ignore[arg-type]
        return await failure(executor(server, "/", calls, allow_private=False), an_attempt())
    finally:
        await calls.close()


@pytest.mark.parametrize("url", TRICKS)
def test_a_url_that_can_be_read_in_two_ways_is_refused(url: str) -> None:
    assert is_refused_as_written(url)


def test_what_stands_behind_a_question_mark_is_no_host() -> None:
    url = read(url="http://app.example?@127.0.0.1/").url.render({})
    assert urlsplit(url).hostname == "app.example"
    assert yarl.URL(url, encoded=True).host == "app.example"


async def test_whatever_a_name_leads_to_is_checked_where_it_is_connected_to() -> None:
    """Sixty addresses by a name of the attacker's own; not one is reached."""
    bad = [each for each in OTHERS if each.isascii() and is_address(each)]
    bad += [each.strip("[]") for each in OTHERS if each.startswith("[") and "%" not in each]
    bad += [
        each.strip("[]")
        for number in (HERE, METADATA, PRIVATE)
        for each in spellings(number)
        if is_address(each.strip("[]"))
    ]
    with tallied("names of private addresses") as tally:
        for address in dict.fromkeys(bad):
            tally.injected += 1
            outcome = await called("http://inside.example:9/", Names([address]))
            refused = outcome.error["type"] == "CallRefused"
            tally.hold(refused, f"{address}: {outcome.error}")
    assert tally.injected > 60


def is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


class Rebinding(AbstractResolver):
    """Public for whoever checks first, private for whoever asks again."""

    def __init__(self) -> None:
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked += 1
        address = "203.0.114.9" if self.asked == 1 else "127.0.0.1"
        flags = socket.AI_NUMERICHOST
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=flags
            )
        ]

    async def close(self) -> None:
        pass


async def test_a_name_that_changes_between_check_and_connect_gains_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The address that was checked is the one that is connected to: the name is asked once."""
    connected: list[Any] = []

    def open_socket(self: Reach, info: Any) -> socket.socket:
        connected.append(info[4][0])
        raise OSError("nothing goes out of a test")

    monkeypatch.setattr(Reach, "open_socket", open_socket)
    names = Rebinding()
    calls = HttpCalls({}, names=names)
    server = AppServer("http://rebinding.example", None)  # type: ignore[arg-type]
    try:
        outcome = await failure(executor(server, "/", calls, allow_private=False))
    finally:
        await calls.close()
    assert outcome.error["type"] == "HttpFailed"
    assert names.asked == 1
    assert set(connected) == {"203.0.114.9"}


@pytest.fixture(scope="module")
def inside() -> Iterator[AppServer]:
    with app_server() as server:
        yield server


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_here_is_not_followed(inside: AppServer, status: int) -> None:
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    from support.appserver import serving

    async def away(_: Any) -> Response:
        return Response(status_code=status, headers={"Location": f"{inside.url}/echo"})

    inside.told.requests.clear()
    with serving(Starlette(routes=[Route("/", away, methods=["POST", "GET"])])) as url:
        calls = HttpCalls({})
        try:
            outcome = await failure(executor(AppServer(url, inside.told), "/", calls))
        finally:
            await calls.close()
    assert outcome.final
    assert inside.told.requests == []


async def test_a_name_with_one_good_address_of_many_reaches_that_one_alone(
    inside: AppServer,
) -> None:
    """The allow-list says 127.0.0.0/8 here; what else the name has is never tried."""
    seen: list[str] = []
    names = Names(["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1"])
    calls = HttpCalls({"FAIRLANE_HTTP_ALLOW": "127.0.0.0/8"}, names=names)
    real = Reach.open_socket

    def open_socket(self: Reach, info: Any) -> socket.socket:
        seen.append(str(info[4][0]))
        return real(self, info)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reach, "open_socket", open_socket)
        try:
            await run(executor(named(inside, "mixed.example"), "/echo", calls))
        finally:
            await calls.close()
    assert set(seen) == {"127.0.0.1"}
