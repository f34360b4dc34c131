"""Where somebody new had to guess: what is refused says why, and what is said is true by then."""

import socket
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import psycopg
import pytest

from cli.calling import Call, Floor
from cli.test_up import up


def test_up_names_its_address_once_somebody_answers_there(database: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from fairlane import Fairlane\n"
        "app = Fairlane()\n"
        '@app.job("orders.ship")\n'
        "def ship() -> None: ...\n"
    )
    with up(tmp_path, "--app", "shop:app", FAIRLANE_DATABASE_URL=database) as running:
        address = running.until_line("web pages: ").removeprefix("web pages: ")
        # Straight away, and not after as long as a start takes.
        with urlopen(f"{address}readyz", timeout=2) as answer:
            assert answer.status == 200
        with psycopg.connect(database) as conn:
            defined = conn.execute("select from fairlane.definition where key = 'orders.ship'")
            assert defined.fetchone() is not None, "a worker has said what it runs"
        port = urlsplit(address).port
        assert port is not None
        socket.create_connection(("127.0.0.1", port), timeout=1).close()


def test_an_event_is_shown_by_its_id_alone(fairlane: Call, acme: str, floor: Floor) -> None:
    floor.tenant("globex")
    fairlane("events", "emit", "a.b", "--tenant", "acme", "--id", "mine")
    fairlane("events", "emit", "a.b", "--tenant", "acme", "--id", "ours")
    fairlane("events", "emit", "a.b", "--tenant", "globex", "--id", "ours")

    assert fairlane("events", "show", "mine", "--json").json["tenant"] == "acme"
    several = fairlane("events", "show", "ours")
    assert several.status == 2
    assert several.line.startswith('acme, globex have an event "ours"; add --tenant')
    assert fairlane("events", "show", "none").line == (
        'there is no event "none"; see: fairlane events list'
    )


def test_nothing_is_sent_again_where_nothing_failed(fairlane: Call, acme: str) -> None:
    fairlane("events", "emit", "a.b", "--tenant", "acme", "--id", "one")

    refused = fairlane("events", "resend", "one", "--tenant", "acme", "--failed")

    assert refused.line == (
        'no delivery of the event "one" has failed; leave out "failed" to send it to every trigger'
    )
    assert len(fairlane("events", "list", "--json").json["items"]) == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("enqueue(tenant => null, definition => 'a.task')", "a job needs a tenant: "),
        ("enqueue(tenant => 'acme', definition => null)", "a job needs a definition: "),
        ("emit(tenant => null, name => 'a.b')", "no tenant is named; see: "),
    ],
)
def test_a_null_is_named_as_such(acme: str, floor: Floor, call: str, said: str) -> None:
    with pytest.raises(psycopg.Error, match=said):
        floor.fetch(f"select * from fairlane.{call}")


def test_who_may_not_read_is_told_who_may(
    fairlane: Call, database: str, floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    floor.conn.execute("create role fairlane_stranger login")
    try:
        floor.conn.execute("grant fairlane_stranger to current_user")
        floor.conn.execute("grant usage on schema fairlane to fairlane_stranger")
        tables = "fairlane.migration, fairlane.repeatable"
        floor.conn.execute(f"grant select on {tables} to fairlane_stranger")
        monkeypatch.setenv("FAIRLANE_DATABASE_URL", f"{database}&role=fairlane_stranger")

        refused = fairlane("top", "--once", "--every", "0.1")

        assert refused.status == 1
        assert refused.line.endswith(
            "; connect as the owner of the schema, who ran fairlane migrate"
        )
    finally:
        floor.conn.execute("drop owned by fairlane_stranger")
        floor.conn.execute("drop role fairlane_stranger")
