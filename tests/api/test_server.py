"""`fairlane server` and `fairlane up`: real processes on real sockets, and the router in another's
application."""

import asyncio
import signal
import socket
import time
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

import fairlane
from api.world import World
from support.core import Core
from support.started import DEADLINE, running


@pytest.mark.parametrize("command", ["server", "up"])
def test_it_serves_with_the_first_token_and_stops_in_good_order(
    database: str, tmp_path: Path, command: str
) -> None:
    words = (command, "--port", "0")
    with running(tmp_path, *words, FAIRLANE_DATABASE_URL=database) as server:
        token = server.until(r"operator token, shown this once: (fl_\S+)")
        address = server.until(r"(?:listening on|API:) (http://[0-9.:]+)")
        server.ready(address)
        as_operator = {"Authorization": f"Bearer {token}"}
        me = httpx2.get(f"{address}/api/v1/me", headers=as_operator)
        assert me.json()["role"] == "operator"
        assert httpx2.get(f"{address}/api/v1/me").status_code == 401
        assert httpx2.get(f"{address}/healthz").json() == {"status": "ok"}

        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(DEADLINE) == 0

    with running(tmp_path, *words, FAIRLANE_DATABASE_URL=database) as again:
        again.until(r"(?:listening on|API:) (http://[0-9.:]+)")
        assert not any("operator token" in line for line in again.said)


# As `fairlane server`, but in a hurry.
HURRIED = (
    "import sys; from fairlane.api import serving; serving.GRACE = 1;"
    "from fairlane.cli.main import main; sys.argv[1:1] = ['server']; sys.exit(main())"
)


def test_it_stops_whoever_keeps_it_waiting(database: str, tmp_path: Path) -> None:
    """One sends no more of its body, one does not read what it is sent."""
    with running(
        tmp_path, "--port", "0", program=("-c", HURRIED), FAIRLANE_DATABASE_URL=database
    ) as server:
        token = server.until(r"operator token, shown this once: (fl_\S+)")
        address = server.until(r"listening on (http://[0-9.:]+)")
        server.ready(address)
        host, port = address.removeprefix("http://").split(":")
        asks = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        more = "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        with (
            socket.create_connection((host, int(port))) as slow,
            socket.create_connection((host, int(port))) as deaf,
        ):
            slow.sendall(f"POST /api/v1/admin/jobs/definitions {asks}{more}".encode())
            tenant = {"Authorization": f"Bearer {token}"}
            httpx2.post(f"{address}/api/v1/admin/tenants", json={"slug": "acme"}, headers=tenant)
            deaf.sendall(f"GET /api/v1/stream?tenant=acme {asks}\r\n".encode())
            assert deaf.recv(12) == b"HTTP/1.1 200"
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(DEADLINE) == 0
            assert time.monotonic() - began < 1 + 5 + 3, server.said
    assert not [line for line in server.said if "Traceback" in line or "Error" in line]


def test_an_address_that_is_taken_is_refused(database: str, tmp_path: Path) -> None:
    with running(tmp_path, "server", "--port", "0", FAIRLANE_DATABASE_URL=database) as first:
        port = first.until(r"listening on http://127.0.0.1:([0-9]+)")
        with running(tmp_path, "up", "--port", port, FAIRLANE_DATABASE_URL=database) as second:
            assert second.process.wait(DEADLINE) == 1
            second.until(r"(must be an address that is free)")


async def test_it_is_not_ready_on_an_old_schema(world: World, core: Core) -> None:
    assert (await world.http.get("/readyz")).status_code == 200

    await core.fetch("delete from fairlane.migration where number = 2")

    async with asyncio.timeout(DEADLINE):
        # An answer holds for a second.
        while (answer := await world.http.get("/readyz")).status_code == 200:
            await asyncio.sleep(0.05)
    assert answer.status_code == 503
    assert (await world.http.get("/healthz")).status_code == 200


async def test_any_number_may_ask_whether_it_is_ready(world: World, core: Core) -> None:
    """It is found out once for all, by a connection that is there anyway."""
    world.app.state.fairlane.readiness._until = 0
    known = await core.one(SESSIONS)

    answers = await asyncio.gather(*(world.http.get("/readyz") for _ in range(100)))

    assert {answer.status_code for answer in answers} == {200}
    assert await core.one(SESSIONS) - known < 5
    looks: list[object] = []
    world.app.state.fairlane.readiness._look = looks.append
    assert (await world.http.get("/readyz")).status_code == 200
    assert looks == []


SESSIONS = "select sessions from pg_stat_database where datname = current_database()"


async def test_the_router_lives_in_another_application(database: str, world: World) -> None:
    app = FastAPI()
    app.include_router(fairlane.router(database))
    member = await world.caller("member", "acme")
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://shop.test") as http,
    ):
        body = {"definition_key": "a.task"}
        made = await http.post("/api/v1/jobs", json=body, headers=member.headers)
        assert made.status_code == 202
        refused = await http.get("/api/v1/jobs")
        assert refused.status_code == 401
        assert refused.headers["content-type"] == "application/problem+json"


async def test_the_whole_api_is_mounted_under_a_path(database: str, world: World) -> None:
    """Nobody runs the lifespan of an application that is mounted: the first call opens it."""
    outer = FastAPI()
    inner = fairlane.asgi(database)
    outer.mount("/background", inner)
    member = await world.caller("member", "acme")
    transport = httpx2.ASGITransport(outer)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.test") as http:
        answer = await http.get("/background/api/v1/jobs", headers=member.headers)
        assert answer.json() == {"items": [], "next_cursor": None}
        document = (await http.get("/background/openapi.json")).json()
        assert document["servers"] == [{"url": "/background"}]
        assert "https:" not in (await http.get("/background/docs")).text
    await inner.state.fairlane.close()
