"""What a result says it has made: kind, URL and expiry, and nothing that could hurt a reader."""

from typing import Any

import pytest

from fairlane import artifacts


def pointers(result: Any) -> list[str]:
    return [fault.pointer for fault in artifacts.faults(result)]


def an_artifact(**fields: Any) -> dict[str, Any]:
    return {"kind": "report", "url": "https://files.example/7.pdf", **fields}


@pytest.mark.parametrize(
    "result",
    [None, 7, "text", [], [{"artifacts": 1}], {}, {"rows": 3}, {"artifacts": None}],
    ids=repr,
)
def test_a_result_without_artifacts_has_no_faults(result: Any) -> None:
    assert artifacts.faults(result) == []


def test_artifacts_may_say_where_how_long_and_how_large() -> None:
    whole = an_artifact(
        expires_at="2030-01-31T18:00:00.123+02:00", name="7.pdf", bytes=0, sha256="aB" * 32
    )

    assert artifacts.faults({"artifacts": [], "rows": 3}) == []
    assert artifacts.faults({"artifacts": [whole, an_artifact(expires_at=None)]}) == []


@pytest.mark.parametrize(
    "url",
    [
        "https://files.example/a%20b?X-Signature=abc&e=1#page=2",
        "http://localhost:8080/x",
        "s3://bucket/key with".replace(" ", "-"),
        "gs://bucket/a@b",
        "az://container/blob",
        "https://[2001:db8::1]:443/x",
        "HTTPS://FILES.EXAMPLE/x",
    ],
)
def test_a_url_that_leads_somewhere_is_taken(url: str) -> None:
    assert artifacts.faults({"artifacts": [an_artifact(url=url)]}) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/relative",
        "//files.example/x",
        "files.example/x",
        "https:files.example",
        "https://",
        "https:///x",
        "https://:443/x",
        "https://files.example:port/x",
        "https://[::1/x",
        "javascript://files.example/%0aalert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://files.example/x",
        "https://files.example/a b",
        "https://files.example\\@evil.example/",
        "https://files.example/\n",
        " https://files.example/",
        "https://files.example/\u202e",
        "https://" + "a" * 5000,
        7,
        None,
        ["https://files.example"],
    ],
)
def test_a_url_that_does_not_is_refused(url: Any) -> None:
    assert pointers({"artifacts": [an_artifact(url=url)]}) == ["/artifacts/0/url"]


@pytest.mark.parametrize("who", ["ann:s3cret", "ann", ":s3cret", "ann%40x:s3cret"])
def test_a_url_with_a_password_is_refused_without_repeating_it(who: str) -> None:
    (fault,) = artifacts.faults({"artifacts": [an_artifact(url=f"https://{who}@files.example/")]})

    assert fault.pointer == "/artifacts/0/url"
    assert "s3cret" not in fault.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("expires_at", value) for value in ["soon", "2030-01-31", "2030-01-31T18:00:00", 7, ""]),
        *(("expires_at", value) for value in ["2030-02-30T18:00:00Z", "2030-01-31T18:00:00+99:00"]),
        *(("expires_at", value) for value in ["٢٠٣٠-01-31T18:00:00Z", "2030-01-31T18:00:00Z\n"]),
        *(("kind", value) for value in ["", "a\nb", "k" * 256, 7]),
        *(("name", value) for value in ["", "a\x00b", 7]),
        *(("bytes", value) for value in [-1, 1.5, "7", True, 2**63]),
        *(("sha256", value) for value in ["", "g" * 64, "a" * 63, "a" * 65, 7]),
        *(("link", value) for value in ["x", None]),
    ],
    ids=repr,
)
def test_a_field_that_cannot_be_is_refused_by_its_pointer(field: str, value: Any) -> None:
    assert pointers({"artifacts": [an_artifact(), an_artifact(**{field: value})]}) == [
        f"/artifacts/1/{field}"
    ]


def test_every_fault_is_told_at_once() -> None:
    assert pointers({"artifacts": [{}, 7, {"kind": "", "url": "x", "a/b": 1}]}) == [
        "/artifacts/0/kind",
        "/artifacts/0/url",
        "/artifacts/1",
        "/artifacts/2/kind",
        "/artifacts/2/url",
        "/artifacts/2/a~1b",
    ]


def test_there_may_not_be_any_number_of_them() -> None:
    assert pointers({"artifacts": [an_artifact()] * 1000}) == []
    assert pointers({"artifacts": [an_artifact()] * 1001}) == ["/artifacts"]
    assert pointers({"artifacts": {"kind": "report"}}) == ["/artifacts"]
