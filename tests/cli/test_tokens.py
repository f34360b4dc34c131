"""`fairlane tokens`: made, shown once, listed, revoked."""

import re

import pytest

from cli.calling import Call, Floor
from fairlane.access import secret

TOKEN = re.compile(r"fl_[0-9A-Za-z]{8}_[0-9A-Za-z]{36}")
FIELDS = {"id", "name", "role", "tenant", "created_at", "created_by", "expires_at"} | {
    "last_used_at",
    "revoked_at",
}


@pytest.mark.usefixtures("acme")
def test_a_tenants_token_is_made_and_shown_once(fairlane: Call, floor: Floor) -> None:
    words = ("--tenant", "acme", "--role", "member", "--name", "shop", "--expires", "90d", "--json")
    made = fairlane("tokens", "create", *words).json
    assert set(made) == FIELDS | {"token"}
    assert TOKEN.fullmatch(made["token"])
    assert (made["role"], made["tenant"], made["name"]) == ("member", "acme", "shop")
    assert made["created_by"].startswith("cli:")
    assert (
        floor.one("select extract(days from expires_at - created_at)::int from fairlane.token")
        == 90
    )

    (listed,) = fairlane("tokens", "list", "--json").json["items"]
    assert listed == {name: value for name, value in made.items() if name != "token"}
    shown = fairlane("tokens", "list")
    assert made["id"] in shown.out
    assert "never" in shown.out
    assert made["token"] not in shown.out


def test_an_operators_token_has_no_tenant(fairlane: Call) -> None:
    made = fairlane("tokens", "create", "--role", "operator", "--json").json
    assert (made["role"], made["tenant"], made["expires_at"]) == ("operator", None, None)


def test_for_people_the_token_stands_alone_on_stdout(fairlane: Call) -> None:
    answer = fairlane("tokens", "create", "--role", "worker")
    assert TOKEN.fullmatch(answer.out.strip())
    assert "not shown again" in answer.err


@pytest.mark.usefixtures("acme")
def test_a_token_is_revoked_by_its_id_or_by_its_text(fairlane: Call, floor: Floor) -> None:
    for by in ("id", "token"):
        made = fairlane("tokens", "create", "--tenant", "acme", "--role", "viewer", "--json").json
        ended = fairlane("tokens", "revoke", made[by], "--json")
        assert ended.json["revoked_at"]
        assert made["token"] not in ended.out
    assert "revoked" in fairlane("tokens", "list").out
    actors = floor.fetch(
        "select distinct actor like 'cli:%%' from fairlane.audit where action like 'token%%'"
    )
    assert actors == [(True,)]


def test_a_list_goes_on_where_it_ended(fairlane: Call) -> None:
    made = {fairlane("tokens", "create", "--role", "worker", "--json").json["id"] for _ in range(3)}
    first = fairlane("tokens", "list", "--limit", "2", "--json").json
    rest = fairlane("tokens", "list", "--cursor", first["next_cursor"], "--json").json
    assert rest["next_cursor"] is None
    assert {token["id"] for token in first["items"] + rest["items"]} == made


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["create"], 2, "--role"),
        (["create", "--role", "boss"], 2, "boss"),
        (["create", "--role", "member"], 2, "--tenant"),
        (["create", "--role", "operator", "--tenant", "acme"], 2, "leave --tenant out"),
        (["create", "--role", "worker", "--expires", "soon"], 2, "90d"),
        (["create", "--role", "worker", "--expires", "0d"], 2, "90d"),
        (["create", "--role", "worker", "--expires", "999999999d"], 2, "90d"),
        (["create", "--role", "worker", "--name", "x" * 201], 1, "200"),
        (["create", "--role", "member", "--tenant", "nobody"], 1, "unknown"),
        (["list", "--tenant", "nobody"], 1, "unknown"),
        (["revoke", "nonesuch"], 1, "not there"),
        (["revoke"], 2, "ID"),
    ],
)
def test_a_wrong_call_says_what_to_do(
    fairlane: Call, words: list[str], status: int, said: str
) -> None:
    answer = fairlane("tokens", *words)
    assert answer.status == status
    assert said in answer.line


def test_a_token_that_is_not_there_is_not_repeated(fairlane: Call) -> None:
    """Somebody may give its text; an error may end up in a log."""
    text = secret.make().text
    answer = fairlane("tokens", "revoke", text)
    assert answer.status == 1
    assert text not in answer.err
