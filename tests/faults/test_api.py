"""The server is killed in the middle of calls, and readers of its streams do not read."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx2
import psycopg
import pytest

from fairlane.access import tokens
from fairlane.access.roles import Role
from faults.scene import scene
from support.ports import free_port
from support.workers import until

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]

DEFINE = """
select fairlane.create_tenant('acme', 'pro', '', '{"max_backlog": null}');
select fairlane.set_queue('default', '{"max_backlog_per_tenant": null}');
select fairlane.define(
  '[{"key": "a.task", "executor": "command", "settings": {"command": ["true"]}}]');
"""


async def a_token(url: str) -> str:
    conn = await asyncpg.connect(url)
    try:
        made = await tokens.create(conn, Role("member"), tenant="acme")
    finally:
        await conn.close()
    return made.token


@contextmanager
def serving(url: str, port: int, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "fairlane", "server", "--port", str(port)],
            cwd=folder,
            env={**os.environ, "FAIRLANE_DATABASE_URL": url, "FAIRLANE_API_RATE": "0"},
            stdout=log,
            stderr=log,
        )
    try:
        until(
            lambda: is_ready(port) or process.poll() is not None, "the server is ready", within=60
        )
        assert process.poll() is None, (folder / "server.log").read_text()
        yield process
    finally:
        process.kill()
        process.wait()


def is_ready(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False


class Caller(threading.Thread):
    """Asks for one job after another, each by a key, until it is told that the job is there."""

    def __init__(self, port: int, token: str) -> None:
        super().__init__(daemon=True)
        self.told: dict[str, str] = {}
        self.asked = 0
        self.enough = threading.Event()
        self._http = httpx2.Client(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=10,
        )

    def run(self) -> None:
        with self._http:
            while not self.enough.is_set():
                key = str(uuid4())
                while (job := self._ask(key)) is None:
                    time.sleep(0.05)
                self.told[key] = job

    def _ask(self, key: str) -> str | None:
        self.asked += 1
        body = {"definition_key": "a.task", "payload": {}, "dedupe_key": key}
        try:
            answer = self._http.post("/api/v1/jobs", json=body)
        except httpx2.TransportError:
            return None
        assert answer.status_code in (200, 202, 503), answer.text
        return str(answer.json()["id"]) if answer.status_code != 503 else None


def goes_on(callers: list[Caller]) -> None:
    begun = sum(len(each.told) for each in callers)
    until(lambda: sum(len(each.told) for each in callers) > begun + 30, "jobs are told of")


@pytest.mark.scene
def test_a_server_that_is_killed_again_and_again_makes_each_job_once(
    database: str, tmp_path: Path
) -> None:
    with scene("server_killed") as played, psycopg.connect(database, autocommit=True) as db:
        db.execute(DEFINE)
        token = asyncio.run(a_token(database))
        port = free_port()
        callers = [Caller(port, token) for _ in range(8)]
        for round_ in range(3):
            with serving(database, port, tmp_path):
                if round_ == 0:
                    for each in callers:
                        each.start()
                goes_on(callers)
            played.injected += 1  # killed, as the block ends
        with serving(database, port, tmp_path):
            for each in callers:
                each.enough.set()
            for each in callers:
                each.join(30)
                assert not each.is_alive()
        found = db.execute(
            "select dedupe_key, array_agg(id::text) from fairlane.jobs group by 1"
        ).fetchall()
        there: dict[str, list[str]] = dict(found)
        told = {key: job for each in callers for key, job in each.told.items()}
        played.operations += sum(each.asked for each in callers)
        played.check("each is there once", [key for key in there if len(there[key]) != 1])
        played.check("as it was told", [key for key in told if there.get(key) != [told[key]]])
        played.check("and nothing else is", there.keys() - told.keys())
        played.check("calls were lost on the way", played.operations == len(told))


def memory(process: "subprocess.Popen[bytes]") -> float:
    """Megabytes that it holds."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("it is gone")


@pytest.mark.scene_long
def test_readers_that_do_not_read_cost_no_memory(database: str, tmp_path: Path) -> None:
    """Ten follow all jobs and take nothing; much happens."""
    port = free_port()
    with (
        scene("slow_reader") as played,
        psycopg.connect(database, autocommit=True) as db,
        serving(database, port, tmp_path) as server,
    ):
        db.execute(DEFINE)
        token = asyncio.run(a_token(database))
        ask = (
            f"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        ).encode()
        readers = []
        for _ in range(10):
            reader = socket.socket()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", port))
            reader.sendall(ask)
            assert b"200 OK" in reader.recv(400)
            readers.append(reader)
            played.injected += 1

        def a_lot(rounds: int) -> None:
            for _ in range(rounds):
                db.execute(
                    "select count(*) from fairlane.enqueue_many((select jsonb_agg("
                    "  jsonb_build_object('tenant', 'acme', 'definition', 'a.task',"
                    "                     'correlation_id', repeat('x', 100)))"
                    "  from generate_series(1, 1000)))"
                )
                played.operations += 1000
                seen = time.monotonic()
                until(lambda since=seen: time.monotonic() - since > 1.2, "it is looked at")  # type: ignore[misc]

        a_lot(3)
        before = memory(server)
        a_lot(8)
        grown = memory(server) - before
        played.check("the memory stays as it was", [grown] if grown > 20 else [])
        played.check("the server serves", not is_ready(port))
        for reader in readers:
            reader.close()
