"""The `http` settings of a definition: what is refused, and what values cannot do."""

import base64
import gzip
import random
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from yarl import URL

from fairlane.errors import ConfigError, DefinitionInvalid
from fairlane.executors.http import signing
from fairlane.executors.http.addresses import set_aside
from fairlane.executors.http.answer import inflated
from fairlane.executors.http.reach import AllowList
from fairlane.executors.http.refusal import CallRefused
from fairlane.executors.http.settings import HttpSettings
from fairlane.executors.http.url import UrlTemplate

CLOSED = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "list": {"type": "array"}},
    "additionalProperties": False,
}
FINE = "https://app.example/gh/{definition}:{version}/solve?id={payload.id}"


def read(**settings: Any) -> HttpSettings:
    return HttpSettings.read({"url": FINE, **settings}, CLOSED)


def faults(settings: Any) -> dict[str, str]:
    with pytest.raises(DefinitionInvalid) as refused:
        HttpSettings.read(settings, CLOSED)
    return {fault.pointer: fault.message for fault in refused.value.faults}


def test_what_is_not_said_is_the_safe_thing() -> None:
    settings = read()

    assert settings.method == "POST"
    assert settings.sends_payload
    assert not settings.allow_private
    assert settings.max_response_bytes == 1_048_576


def test_every_fault_is_told_at_once_with_its_place() -> None:
    found = faults(
        {
            "method": "BREW",
            "url": "https://{payload.host}/",
            "headers": {
                "Host": "evil.example",
                "content-length": "0",
                "Transfer-Encoding": "chunked",
                "Connection": "close",
                "Webhook-Signature": "v1,forged",
                "Fairlane-Tenant": "globex",
                "X Y": "1",
                "X-A": "{payload.nope}",
                "X-B": "{secret.key}",
                "X-C": "a\r\nb",
                "X-D": "{secret}",
                "X-E": 1,
                "a/b~c": "1",
            },
            "body": {"a": ["{nope}", "{payload.nope}", "{secret.token}"], "b": "x{payload.list}"},
            "sign_with": ["fine", "a/b", "KEY"],
            "allow_private": "yes",
            "max_response_bytes": True,
            "connect_timeout_seconds": 0,
            "retries": 3,
        }
    )

    assert sorted(found) == sorted(
        [
            "/http/method",
            "/http/url",
            *(f"/http/headers/{name}" for name in ("Host", "content-length", "Transfer-Encoding")),
            *(f"/http/headers/{name}" for name in ("Connection", "Webhook-Signature", "X Y")),
            *(f"/http/headers/{name}" for name in ("Fairlane-Tenant", "X-A", "X-B", "X-C", "X-D")),
            "/http/headers/X-E",
            "/http/headers/a~1b~0c",
            "/http/body/a/0",
            "/http/body/a/1",
            "/http/body/a/2",
            "/http/body/b",
            "/http/sign_with/1",
            "/http/sign_with/2",
            "/http/allow_private",
            "/http/max_response_bytes",
            "/http/connect_timeout_seconds",
            "/http/retries",
        ]
    )
    assert "host and port must be written out" in found["/http/url"]


@pytest.mark.parametrize("settings", [None, [], "https://app.example/", {}, {"url": 7}])
def test_settings_that_are_none(settings: Any) -> None:
    assert list(faults(settings)) in (["/http"], ["/http/url"])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/solve",
        "//app.example/",
        "ftp://app.example/",
        "file:///etc/passwd",
        "{payload.id}://app.example/",
        "https://{tenant.slug}.example/",
        "https://app.example{payload.id}/",
        "https://app.example:{payload.id}/",
        "https://app.example{{/",
        "https://user:word@app.example/",
        "https://app.example@evil.example/",
        "https://app.example\\@evil.example/",
        "https://app.example:0/",
        "https://app.example:99999/",
        "https://app..example/",
        "https:///solve",
        "https://münchen.example/",
        "https://①②⑦.⓪.⓪.①/",
        "https://127.1/",
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://127.0.0.1./",
        "https://1.2.3.4.5/",
        "https://[::1%25lo]/",
        "https://[1]/",
        "https://app.example/a b",
        "https://app.example/ü",
        "https://app.example/%zz",
        "https://app.example/a\r\nX: 1",
        "https://app.example/a#b",
        "https://app.example/a/../b",
        "https://app.example/%2e%2e/b",
        "https://app.example/{nope}",
        "https://app.example/{payload}",
        "https://app.example/{payload.nope}",
        "https://app.example/{payload.list}",
        "https://app.example/{secret.token}",
        "https://app.example/{tenant.name}",
        "https://app.example/{",
        "https://app.example/?{payload.id}",
        "https://app.example/?{payload.id}=1",
        "https://app.example/?a=1&{payload.id}=1",
    ],
)
def test_a_url_that_no_call_is_made_to(url: str) -> None:
    assert set(faults({"url": url})) == {"/http/url"}


@pytest.mark.parametrize(
    ("url", "rendered"),
    [
        ("https://app.example", "https://app.example/"),
        ("HTTPS://App.Example:443/a", "https://app.example/a"),
        ("http://app.example:8080?a=1", "http://app.example:8080/?a=1"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9/"),  # the call is refused, not the definition
        ("https://[2606:4700::1111]:8443/a%20b", "https://[2606:4700::1111]:8443/a%20b"),
        ("https://app.example/{payload.id}?{{", None),
        ("https://a_b.example/x-{payload.id}.json", "https://a_b.example/x-7%2F.json"),
        (
            "https://app.example/?a={payload.id}&b=x{payload.id}",
            "https://app.example/?a=7%2F&b=x7%2F",
        ),
    ],
)
def test_urls_as_they_are_called(url: str, rendered: str | None) -> None:
    if rendered is None:
        faults({"url": url})
    else:
        assert read(url=url).url.render({"payload": {"id": "7/"}}) == rendered


def test_no_value_leaves_its_segment_or_its_parameter() -> None:
    template = UrlTemplate("https://app.example/a/{payload.p}/b-{payload.s}?x={payload.q}&y=1")
    pieces = list("/\\.?#&=%@:;{}+ä0 \t\x7f\u2028\u202e")
    pieces += ["..", "%2f", "%2e", "%5c", "{payload.q}", "http://evil/", "\r\n"]
    chance = random.Random(4)
    refused = 0
    for _ in range(20_000):
        p, s, q = ("".join(chance.choices(pieces, k=chance.randint(0, 5))) for _ in range(3))
        try:
            url = template.render({"payload": {"p": p, "s": s, "q": q}})
        except CallRefused:
            refused += 1
            continue
        for host in (urlsplit(url).hostname, URL(url).host, URL(url, encoded=True).host):
            assert host == "app.example"
        assert url.isascii()
        assert " " not in url
        # The same to a client that tidies paths up and to one that does not.
        for path in (URL(url).raw_path, URL(url, encoded=True).raw_path):
            assert [unquote(part) for part in path.split("/")] == ["", "a", p, f"b-{s}"]
        query = urlsplit(url).query
        assert [unquote(part) for part in query.split("&")] == [f"x={q}", "y=1"]
    assert 0 < refused < 15_000


def test_a_url_has_a_length() -> None:
    with pytest.raises(CallRefused, match="the limit is 8000"):
        read().url.render({"definition": "a", "version": "1", "payload": {"id": "x" * 8_000}})


def test_a_get_has_no_body_of_its_own() -> None:
    assert "/http/body" in faults({"url": FINE, "method": "GET", "body": {}})
    assert not read(method="get").sends_payload


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1",
        "127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1",
        "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1",
        "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:10::1", "2001:db8::1",
        "2002:7f00:1::", "2002:808:808::", "3fff::1", "4000::1", "5f00::1", "fc00::1",
        "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert set_aside(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
        "192.0.1.1", "223.255.255.255", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450::1",
        "2003::1",
    ],
)  # fmt: skip
def test_addresses_that_are(address: str) -> None:
    assert set_aside(ip_address(address)) is None


@pytest.mark.parametrize(
    "text", ["https://app.example", "a/b", "10.0.0.1/8", "1.2.3", "*", "a:80", "*a.b"]
)
def test_a_wrong_allow_list_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(ConfigError, match="FAIRLANE_HTTP_ALLOW must be hosts"):
        AllowList.parse(f"app.example, {text}")


def test_an_allow_list_of_nothing_is_none() -> None:
    assert AllowList.parse(" , ").reach("anywhere.example", private=False).networks is None


def test_little_that_unpacks_to_much_is_not_unpacked() -> None:
    bomb = gzip.compress(b"0" * 10_000_000)

    assert len(inflated(bomb, "gzip", 1_000)) == 1_001


# Signatures.


def test_a_signature_is_that_of_standard_webhooks() -> None:
    """The example that the libraries of Standard Webhooks test themselves with."""
    key = signing.key_of("a", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")

    signed = signing.signature(
        key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )

    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_receiver_has_a_key_of_its_own() -> None:
    secrets = {
        signing.secret_for(receiver, key)
        for receiver in ("app.example", "app.example:8443", "other.example")
        for key in ("one", "another")
    }

    assert len(secrets) == 6
    assert signing.secret_for("App.Example", "one") in secrets
    assert all(len(base64.b64decode(secret.removeprefix("whsec_"))) == 32 for secret in secrets)
