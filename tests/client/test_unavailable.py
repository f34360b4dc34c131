"""Which database is meant, and what is said when it is not there."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import psycopg
import pytest

from fairlane import Fairlane
from fairlane.config import Settings
from fairlane.core.calls import Call
from fairlane.errors import ConfigError, DatabaseUnavailable
from support.cluster import Cluster
from support.shop import send_of, shop

Db = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port where nobody listens: it is bound, so that nobody can."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_a_server_that_is_not_there_is_named_at_once(free_port: int) -> None:
    app = shop(f"postgresql://u:s3cret@127.0.0.1:{free_port}/shop")

    with pytest.raises(DatabaseUnavailable, match="the database does not answer") as refused:
        send_of(app).enqueue_sync(tenant="acme", number=1)

    assert "s3cret" not in str(refused.value)
    app.close_sync()


def test_a_socket_that_is_not_there_is_named_at_once(tmp_path: Path) -> None:
    app = shop(f"postgresql://u@/shop?host={tmp_path}")

    with pytest.raises(DatabaseUnavailable):
        app.get_sync("0190b5a0-0000-7000-8000-000000000000")
    app.close_sync()


async def test_opening_shows_it_at_the_start(free_port: int) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with shop(f"postgresql://127.0.0.1:{free_port}/shop"):
            pass


def test_a_database_that_does_not_exist_is_said_so(database: str) -> None:
    app = shop(urlunsplit(urlsplit(database)._replace(path="/no_such_database")))

    with pytest.raises(DatabaseUnavailable, match="does not exist"):
        send_of(app).enqueue_sync(tenant="acme", number=1)
    app.close_sync()


def test_a_server_that_came_up_since_is_used(app: Fairlane, db: Db) -> None:
    """What failed once is tried again the next time."""
    name = db.info.dbname
    with psycopg.connect(db.info.dsn.replace(name, "template1"), autocommit=True) as server:
        server.execute(f'alter database "{name}" with allow_connections false'.encode())
        with pytest.raises(DatabaseUnavailable, match="not currently accepting connections"):
            send_of(app).enqueue_sync(tenant="acme", number=1)
        server.execute(f'alter database "{name}" with allow_connections true'.encode())

    assert send_of(app).enqueue_sync(tenant="acme", number=1).tenant == "acme"


def test_a_database_without_fairlane_is_told_how_to_get_it(empty_database: str) -> None:
    app = shop(empty_database)

    with pytest.raises(DatabaseUnavailable, match="run: fairlane migrate"):
        send_of(app).enqueue_sync(tenant="acme", number=1)
    app.close_sync()


def test_without_any_database_it_is_said_how_to_get_one(tmp_path: Path) -> None:
    app = Fairlane(settings=Settings(home=tmp_path))

    with pytest.raises(
        DatabaseUnavailable, match="run `fairlane up`, or set FAIRLANE_DATABASE_URL"
    ):
        app.enqueue_sync("thumbnails", tenant="acme")
    app.close_sync()


def test_the_environment_names_the_database(
    database: str, db: Db, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    app = Fairlane()
    monkeypatch.setenv("DATABASE_URL", database)
    db.execute("""select fairlane.define('[{"key": "thumbnails"}]')""")

    assert app.enqueue_sync("thumbnails", tenant="acme").queue == "default"
    app.close_sync()


async def test_a_running_embedded_server_is_joined(cluster: Cluster) -> None:
    sockets = Path(parse_qs(urlsplit(cluster.url).query).get("host", [""])[0])
    if sockets.name != "pg":
        pytest.skip("the server of this run is not an embedded one")
    app = Fairlane(settings=Settings(home=sockets.parent))

    async with app:
        [row] = await app.ask(Call("select current_database()"))

    assert row[0] == "fairlane"


def test_the_url_given_wins_over_the_settings_and_may_name_a_driver() -> None:
    app = Fairlane(
        "postgresql+asyncpg://db/given",
        settings=Settings(database_url="postgresql://db/set", payload_limit=10),
    )

    assert app.settings.database_url == "postgresql://db/given"
    assert app.settings.payload_limit == 10


def test_a_url_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="database_url must be a URL like postgresql://"):
        Fairlane("mysql://db/shop")
