"""Half-open sockets: the peer is gone and nobody was told. Both sides notice by themselves."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.claims import late
from faults.proxy import Proxy
from faults.scene import scene
from support.hosts import Host, hosts
from support.postgres import Server
from support.workers import Fleet, fleet_of, until

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

APP = "faults.scene_tasks:app"
LEASE = 6.0
NOTICED = 12.0  # seconds, on either side


@pytest.fixture
def fleet(server: Server, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(server.url(), tmp_path) as fleet:
        yield fleet


def beats(fleet: Fleet, attempt: int) -> list[float]:
    words = (line.split() for line in fleet.runs("beats"))
    return [float(at) for _, number, at in words if int(number) == attempt]


@pytest.mark.scene
def test_a_worker_in_the_dark_stops_its_bodies_before_another_runs_them(
    server: Server, fleet: Fleet
) -> None:
    """Nobody resets anything: the network swallows what is sent, for as long as it takes."""
    with scene("half_open_worker") as played, Proxy(*server.target) as proxy:
        job = fleet.enqueue("beats", max_attempts=9)
        fleet.url = proxy.url(server.url())
        victim = fleet.worker("default=1", app=APP, FAIRLANE_LEASE_SECONDS=f"{LEASE:g}")
        until(lambda: beats(fleet, 1), "it runs")
        fleet.url = server.url()
        other = fleet.worker("default=1", app=APP, FAIRLANE_LEASE_SECONDS=f"{LEASE:g}")

        dark = time.monotonic()
        darkened = fleet.ask("select clock_timestamp()")
        proxy.blackhole()
        victim.until_said("stopping its jobs", within=LEASE)
        noticed = time.monotonic() - dark
        until(lambda: beats(fleet, 2), "it runs elsewhere", within=LEASE + 10)
        first, second = beats(fleet, 1)[-1], beats(fleet, 2)[0]
        played.injected += proxy.fired["blackhole"]
        played.check("the worker notices before its lease ends", noticed > LEASE)
        played.check("never in two places", first >= second)
        # The house is kept every 0.75 s
        played.check("elsewhere soon after the lease", late(fleet, job, darkened, LEASE + 2))

        (fleet.folder / "open").touch()
        fleet.until_status(job, "succeeded")
        other.kill()
        proxy.heal()
        healed = time.monotonic()
        again = [fleet.enqueue("echo") for _ in range(20)]
        for each in again:
            fleet.until_status(each, "succeeded", within=30)
        back = time.monotonic() - healed
        played.check("back soon after the light", [back] if back > 15 else [])
        played.operations += 21
        fleet.assert_books_balance()


ASKS = """
import asyncio, sys
from fairlane.core.calls import Call
from fairlane.core.connect import pool, send

async def main():
    connections = await pool(sys.argv[1], name="fairlane worker")
    async with connections.acquire() as connection:
        await send(connection, Call("select 1"))
        print("asked", flush=True)
        while True:
            try:
                await send(connection, Call("select 1"))
            except Exception as error:
                print(f"noticed {type(error).__name__}", flush=True)
                return
            await asyncio.sleep(0.2)

asyncio.run(main())
"""

HOLDS = """
import asyncio, sys
from fairlane.core.connect import connect

async def main():
    connection = await connect(sys.argv[1], name="fairlane worker")
    await connection.execute("begin")
    await connection.execute("select * from fairlane.queue where name = 'default' for update")
    print("holds", flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


@contextmanager
def running(host: Host, script: str, url: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        host.command(sys.executable, "-c", script, url), stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def far(seed: Path, place: Path) -> Iterator[tuple[Server, Host]]:
    """A server, and a host that reaches it by a cable of its own."""
    server = Server.copy_of(seed, place / "far")
    with hosts(server.url(), 1) as (host,):
        server.settings |= {"listen_addresses": host.address}
        with (server.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.231.0.0/16 trust\n")
        host.url = f"postgresql://fairlane@{host.address}:5432/fairlane?sslmode=disable"
        try:
            server.start()
            yield server, host
        finally:
            server.stop()


@pytest.mark.scene_long
def test_a_client_whose_server_vanished_hears_of_it_in_time(far: tuple[Server, Host]) -> None:
    """The cable is pulled: no answer, no reset, not even an acknowledged byte. By default Linux
    would send again for a quarter of an hour."""
    _, host = far
    with scene("half_open_client_side") as played, running(host, ASKS, host.url) as asking:
        assert said(asking) == "asked"
        begun = time.monotonic()
        host.pull_the_cable()
        played.injected += 1
        with pytest.raises(subprocess.TimeoutExpired):
            asking.communicate(timeout=2)  # nobody has told it
        told = ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            told, _ = asking.communicate(timeout=NOTICED - 2)
        took = time.monotonic() - begun
        played.operations += 1
        played.check("it notices in time", [took] if "noticed" not in told else [])


@pytest.mark.scene_long
def test_a_client_that_vanished_holds_its_lock_no_longer_than_allowed(
    far: tuple[Server, Host],
) -> None:
    server, host = far
    with scene("half_open_server_side") as played, running(host, HOLDS, host.url) as holding:
        assert said(holding) == "holds"
        begun = time.monotonic()
        host.pull_the_cable()
        played.injected += 1
        with server.connect("fairlane") as db:
            db.execute("set statement_timeout = '20s'")
            db.execute("select from fairlane.queue where name = 'default' for update")
        took = time.monotonic() - begun
        played.operations += 1
        played.check("it lets go in time", [took] if took > NOTICED else [])
