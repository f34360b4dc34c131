"""The embedded PostgreSQL, with real processes: started, adopted, killed and started again."""

import asyncio
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from fairlane import _binaries
from fairlane.config import Settings
from fairlane.database import database
from fairlane.embedded import Embedded, adopt
from fairlane.embedded.presence import pid_in
from fairlane.errors import DatabaseUnavailable, EmbeddedError

linux = pytest.mark.skipif(sys.platform != "linux", reason="speaks to Linux's kernel")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")

CHILD = """
import sys
from pathlib import Path
from fairlane.embedded import Embedded

server = Embedded(Path(sys.argv[1]), durable=False)
print(server.start(), server.owned, flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that every user may enter, which pytest's own are not."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    made = Path(tempfile.mkdtemp(prefix="fairlane-", dir=parent))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home whose cluster has been made; no server runs on it between tests."""
    with folder() as made:
        with Embedded(made, durable=False):
            pass
        yield made


@pytest.fixture
def new_home() -> Iterator[Path]:
    with folder() as made:
        yield made


@pytest.fixture
def starter() -> Iterator[Callable[[Path], "subprocess.Popen[str]"]]:
    """Starts other processes that hold an Embedded until their input ends."""
    started: list[subprocess.Popen[str]] = []

    def start(home: Path) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.communicate(timeout=30)


def answer(process: "subprocess.Popen[str]") -> tuple[str, bool]:
    assert process.stdout is not None
    url, owned = process.stdout.readline().split()
    return url, owned == "True"


def ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(query.encode()).fetchone()
        return row[0] if row else None


def server_pid(home: Path) -> int:
    pid = pid_in(home / "pg" / "data" / "postmaster.pid")
    assert pid is not None
    return pid


@contextmanager
def gone(pid: int) -> Iterator[None]:
    """The process ends because of what happens in the block."""
    watch = os.pidfd_open(pid)
    try:
        yield
        assert select.select([watch], [], [], 30)[0], f"process {pid} lives on"
    finally:
        os.close(watch)


def test_what_was_written_is_there_after_a_restart(home: Path) -> None:
    with Embedded(home, durable=False) as url, psycopg.connect(url) as conn:
        conn.execute("create table kept as select 42 as answer")
    assert adopt(home) is None

    with Embedded(home, durable=False) as url:
        assert ask(url, "select answer from kept") == 42


def test_every_driver_can_use_the_url(home: Path) -> None:
    who = "select current_user || ' ' || current_database()"

    async def by_asyncpg(url: str) -> object:
        conn = await asyncpg.connect(url)
        try:
            return await conn.fetchval(who)
        finally:
            await conn.close()

    async def by_sqlalchemy_asyncpg(url: str) -> object:
        engine = create_async_engine(url.replace("://", "+asyncpg://", 1))
        try:
            async with engine.connect() as conn:
                return await conn.scalar(sqlalchemy.text(who))
        finally:
            await engine.dispose()

    def by_sqlalchemy(url: str) -> object:
        engine = sqlalchemy.create_engine(url.replace("://", "+psycopg://", 1))
        try:
            with engine.connect() as conn:
                return conn.scalar(sqlalchemy.text(who))
        finally:
            engine.dispose()

    def by_psycopg2(url: str) -> object:
        conn = psycopg2.connect(url)
        try:
            with conn.cursor() as cursor:
                cursor.execute(who)
                return (cursor.fetchone() or [None])[0]
        finally:
            conn.close()

    with Embedded(home, durable=False) as url:
        answers = [
            ask(url, who),
            asyncio.run(by_asyncpg(url)),
            asyncio.run(by_sqlalchemy_asyncpg(url)),
            by_sqlalchemy(url),
            by_psycopg2(url),
        ]

    assert answers == ["fairlane fairlane"] * 5


def test_it_listens_on_no_port_and_takes_settings(home: Path) -> None:
    with Embedded(home, {"max_connections": "17"}, durable=False) as url:
        assert ask(url, "show listen_addresses") == ""
        assert ask(url, "show max_connections") == "17"
        assert ask(url, "show fsync") == "off"

    with Embedded(home) as url:
        assert ask(url, "show fsync") == "on"


def test_its_socket_is_for_its_owner_alone(home: Path) -> None:
    with Embedded(home, durable=False) as url:
        sockets = Path(parse_qs(urlsplit(url).query)["host"][0])

        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700


def test_the_role_of_the_url_is_not_a_superuser(home: Path) -> None:
    with Embedded(home, durable=False) as url:
        assert ask(url, "select usesuper from pg_user where usename = current_user") is False


def test_who_adopts_a_server_leaves_it_running(
    home: Path, starter: Callable[[Path], "subprocess.Popen[str]"]
) -> None:
    with Embedded(home, durable=False) as url:
        other = starter(home)
        assert answer(other) == (url, False)
        other.communicate(timeout=30)

        assert adopt(home) == url
        assert ask(url, "select 1") == 1

    assert adopt(home) is None


@pytest.mark.race
def test_of_six_starters_at_once_one_starts_the_server_and_all_use_it(
    new_home: Path, starter: Callable[[Path], "subprocess.Popen[str]"]
) -> None:
    answers = [answer(process) for process in [starter(new_home) for _ in range(6)]]

    assert len({url for url, _ in answers}) == 1
    assert sorted(owned for _, owned in answers) == [False] * 5 + [True]


@linux
@pytest.mark.fault
def test_the_server_goes_when_its_owner_is_killed_and_the_next_start_is_clean(
    home: Path, starter: Callable[[Path], "subprocess.Popen[str]"]
) -> None:
    owner = starter(home)
    assert answer(owner)[1]
    with gone(server_pid(home)):
        owner.kill()
    assert adopt(home) is None

    with Embedded(home, durable=False) as url:
        assert ask(url, "select 1") == 1


@linux
@pytest.mark.fault
def test_an_owner_that_starts_while_the_old_server_still_stops_waits_for_it(
    home: Path, starter: Callable[[Path], "subprocess.Popen[str]"]
) -> None:
    owner = starter(home)
    assert answer(owner)[1]
    owner.kill()

    # Either the old server is caught still answering, or it is gone: never an error.
    with Embedded(home, durable=False) as url:
        assert url.startswith("postgresql://")


@linux
@pytest.mark.fault
def test_it_starts_again_after_the_server_itself_was_killed(home: Path) -> None:
    first = Embedded(home)
    url = first.start()
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("create table survives as select 1")
        with gone(server_pid(home)):
            os.kill(server_pid(home), signal.SIGKILL)
        assert adopt(home) is None

        with Embedded(home) as url:
            assert ask(url, "select count(*) from survives") == 1
    first.stop()


@linux
@pytest.mark.fault
def test_a_stale_lock_whose_process_id_was_reused_is_no_hindrance_and_no_ones_death(
    home: Path,
) -> None:
    """In a container the ids start over: the id in postmaster.pid is soon someone else's."""
    data = home / "pg" / "data"
    with Embedded(home, durable=False):
        lines = (data / "postmaster.pid").read_text().splitlines(keepends=True)
    who = _binaries.account(data)
    innocent = subprocess.Popen(["cat"], stdin=subprocess.PIPE, **who.popen())
    for stale in (data / "postmaster.pid", home / "pg" / ".s.PGSQL.5432.lock"):
        stale.write_text("".join([f"{innocent.pid}\n", *lines[1:]]))
        who.own(stale)

    assert adopt(home) is None
    with Embedded(home, durable=False) as url:
        assert ask(url, "select 1") == 1

    assert innocent.poll() is None
    innocent.communicate()
    assert innocent.returncode == 0


@pytest.mark.parametrize("name", ["deep/" * 30, "a,b"])
def test_a_home_whose_name_no_socket_can_carry_works_all_the_same(
    new_home: Path, name: str
) -> None:
    home = new_home / name
    with Embedded(home, durable=False) as url:
        sockets = Path(parse_qs(urlsplit(url).query)["host"][0])

        assert sockets.parent == Path(tempfile.gettempdir())
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert ask(url, "select 1") == 1
        assert adopt(home) == url

    assert not sockets.exists()


def test_data_of_another_version_is_refused_with_what_to_do(new_home: Path) -> None:
    data = new_home / "pg" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("13\n")

    with pytest.raises(EmbeddedError, match=r"is of PostgreSQL 13 and the server is .*BINDIR"):
        Embedded(new_home).start()


def test_a_user_id_without_a_name_gets_a_hint(
    new_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)

    with pytest.raises(EmbeddedError, match="has no entry in the passwd file"):
        Embedded(new_home).start()


def test_a_setting_the_server_refuses_is_shown_in_its_own_words(home: Path) -> None:
    with pytest.raises(EmbeddedError, match=r'did not start: .*"max_connections".*many'):
        Embedded(home, {"max_connections": "many"}).start()


def test_a_folder_without_a_postgresql_is_refused_by_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_PG_BINDIR", str(tmp_path))

    with pytest.raises(EmbeddedError, match=r"FAIRLANE_PG_BINDIR is .* holds no postgres"):
        Embedded(home).start()


@linux
def test_a_thread_that_could_end_before_the_process_may_not_start_it(home: Path) -> None:
    said: list[str] = []

    def start() -> None:
        with pytest.raises(EmbeddedError) as refused:
            Embedded(home).start()
        said.append(str(refused.value))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    assert said == ["start the embedded PostgreSQL from the main thread"]


@as_root
def test_root_leaves_its_closed_folders_closed_and_puts_the_data_elsewhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with folder() as closed, folder() as shared:
        closed.chmod(0o700)
        monkeypatch.setattr(_binaries, "SHARED", shared)
        home = closed / "project" / ".fairlane"

        with Embedded(home, durable=False) as url:
            assert ask(url, "select 1") == 1
            assert adopt(home) == url
            assert str(shared) in url
        with Embedded(home, durable=False) as again:
            assert again == url

        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        assert "cannot enter" in caplog.text
        assert not (home / "pg").exists()


@as_root
def test_programs_that_the_servers_user_cannot_reach_are_copied_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with folder() as closed, folder() as shared:
        monkeypatch.setattr(_binaries, "SHARED", shared)
        found = _binaries.find()
        shutil.copytree(found.parent, closed / "wheel" / "install", symlinks=True)
        closed.chmod(0o700)
        nobody = _binaries.Account(65534, 65534, "nobody")

        copy = _binaries.reachable(closed / "wheel" / "install" / "bin", nobody)
        assert copy.is_relative_to(shared)
        assert _binaries.version(copy) == _binaries.version(found)
        assert _binaries.reachable(closed / "wheel" / "install" / "bin", nobody) == copy
        assert _binaries.reachable(copy, nobody) == copy
        assert len(list(shared.iterdir())) == 1


@as_root
def test_an_ordinary_user_needs_no_one_elses_help(new_home: Path) -> None:
    nobody = _binaries.Account(65534, 65534, "nobody")
    programs = _binaries.reachable(_binaries.find(), nobody)
    os.chown(new_home, nobody.uid, nobody.gid)

    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(nobody.gid)
            os.setuid(nobody.uid)
            os.environ["FAIRLANE_PG_BINDIR"] = str(programs)
            with Embedded(new_home, durable=False) as url:
                assert ask(url, "select 1") == 1
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    assert os.waitpid(child, 0)[1] == 0
    assert (new_home / "pg" / "data").stat().st_uid == nobody.uid


def test_a_configured_database_is_used_as_it_is(tmp_path: Path) -> None:
    settings = Settings(database_url="postgresql://db/app", home=tmp_path / "home")

    for start in (True, False):
        with database(settings, start=start) as url:
            assert url == "postgresql://db/app"
    assert not settings.home.exists()


def test_commands_join_the_server_of_up_or_say_how_to_get_one(home: Path) -> None:
    settings = Settings(home=home)

    with (
        pytest.raises(DatabaseUnavailable, match="run `fairlane up`, or set FAIRLANE_DATABASE_URL"),
        database(settings, start=False),
    ):
        pass

    with database(settings, start=True) as owned, database(settings, start=False) as joined:
        assert owned == joined
    assert adopt(home) is None
