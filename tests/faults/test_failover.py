"""A primary and its standby: what is acknowledged is there after a failover, if it was waited for.

Clients and workers go through a proxy, which is to them what a floating address is.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fairlane import Fairlane
from fairlane.client import aio
from fairlane.client.aio import OutcomeUnknown
from fairlane.core.calls import enqueue
from fairlane.core.connect import connected, send
from fairlane.core.wary import Unreplicated
from fairlane.ids import uuid7
from faults.load import enqueuing
from faults.proxy import Proxy
from faults.scene import scene
from support.pair import promote, standby_of, wait_for_standby
from support.postgres import Db, Server
from support.workers import fleet_of, until

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

APP = "faults.scene_tasks:app"
LEASE = "6"


@pytest.fixture
def primary(seed: Path, place: Path) -> Iterator[Server]:
    found = Server.copy_of(seed, place / "primary").start()
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def standby(primary: Server, place: Path) -> Iterator[Server]:
    found = standby_of(primary, place / "standby")
    try:
        yield found
    finally:
        found.stop()


def in_step(primary: Server) -> None:
    """Wait until the standby has all that was committed so far."""
    with primary.connect() as db:
        row = db.execute("select pg_current_wal_lsn()").fetchone()
        assert row is not None
        until(
            lambda: is_true(db, f"flush_lsn >= '{row[0]}' from pg_stat_replication"),
            "the standby is in step",
        )


def is_true(db: Db, question: str) -> bool:
    row = db.execute(f"select {question}").fetchone()
    return bool(row and row[0])


def missing(db: Db, jobs: set[UUID]) -> list[UUID]:
    found = db.execute(
        "select id from unnest(%s::uuid[]) id where not exists"
        " (select from fairlane.jobs j where j.id = id.id)",
        [list(jobs)],
    ).fetchall()
    return [row[0] for row in found]


def fail_over(primary: Server, standby: Server, proxy: Proxy) -> None:
    primary.kill()
    promote(standby)
    proxy.point_to(*standby.target)
    proxy.cut()


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("strict", marks=pytest.mark.scene),
        pytest.param("async", marks=pytest.mark.scene_long),
    ],
)
def test_a_failover_under_load(primary: Server, standby: Server, tmp_path: Path, mode: str) -> None:
    with (
        scene(f"failover_{mode}") as played,
        Proxy(*primary.target) as proxy,
        fleet_of(proxy.url(primary.url()), tmp_path) as fleet,
    ):
        if mode == "strict":
            wait_for_standby(primary)
        for _ in range(2):
            fleet.worker("default=4", app=APP, FAIRLANE_LEASE_SECONDS=LEASE)
        beating = fleet.enqueue("beats", max_attempts=9)
        until(lambda: fleet.runs("beats"), "a long one runs")
        with enqueuing(proxy.url(primary.url())) as enqueuers:
            load = enqueuers.load
            until(lambda: len(load.acked) > 300, "much is acknowledged")
            if mode == "async":
                # What was acknowledged while the standby was cut off is what may be lost.
                before = set(load.acked)
                in_step(primary)
                os.kill(primary.named("walsender"), signal.SIGSTOP)
                until(lambda: len(load.acked) > len(before) + 100, "more is acknowledged")
            fail_over(primary, standby, proxy)
            played.injected += 1
            after = len(load.acked)
            until(lambda: len(load.acked) > after + 300, "it goes on", within=60)
            enqueuers.stop()
        played.operations += load.operations
        fleet.db.close()
        fleet.db = standby.connect("fairlane")
        lost = missing(fleet.db, load.acked)
        if mode == "strict":
            played.check("every acknowledged job is there", lost)
        else:
            played.check("what is lost was never on the standby", set(lost) & before)
            played.check("something is, or the scene shows nothing", not lost)
        (tmp_path / "open").touch()
        if mode == "strict" or not missing(fleet.db, {UUID(str(beating))}):
            fleet.until_status(beating, "succeeded", within=60)
        until(
            lambda: fleet.ask("select count(*) from fairlane.job") == 0,
            "all that is there is done",
            within=90,
        )
        # Refused is refused: it was never sent, or undone. Unknown may be there or not.
        there = {row[0] for row in fleet.db.execute("select id from fairlane.jobs").fetchall()}
        played.check("what was refused is not there", set(load.refused) & there)
        known = load.acked | load.unknown | set(load.refused) | {UUID(str(beating))}
        played.check("nothing is there that nobody asked for", there - known)
        played.check(
            "each ended once",
            fleet.db.execute(
                "select id from fairlane.jobs group by id having count(*) > 1"
            ).fetchall(),
        )
        fleet.assert_books_balance()


@pytest.mark.scene
def test_while_the_standby_hangs_callers_are_answered_and_nothing_is_claimed_as_done(
    primary: Server, standby: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit waits for ever. Who gives up ends the wait, and the job is there to see; sent
    again, which the client does by itself, it must not be acknowledged all the same."""
    monkeypatch.setattr(aio, "PATIENCE", 3.0)
    monkeypatch.setattr(aio, "TRIES", 2)
    with scene("hanging_standby") as played, fleet_of(primary.url(), tmp_path) as fleet:
        wait_for_standby(primary)
        receiver = standby.named("walreceiver")
        os.kill(receiver, signal.SIGSTOP)
        try:
            played.injected += 1
            job = uuid7()
            begun = time.monotonic()
            outcome = asyncio.run(asked(primary.url(), job))
            took = time.monotonic() - begun
            played.operations += 1
            played.check("the outcome is unknown", outcome is not OutcomeUnknown)
            played.check("it is answered in time", [took] if took > 10 else [])
        finally:
            os.kill(receiver, signal.SIGCONT)
        until(lambda: not missing(fleet.db, {job}), "it is there once the standby is back")
        again = asyncio.run(asked(primary.url(), job))
        played.operations += 1
        played.check("sent again it is the same job", again is not None)
        count = fleet.ask("select count(*) from fairlane.jobs where id = %s", job)
        played.check("there is one", count != 1)


async def asked(url: str, job: UUID) -> type[BaseException] | None:
    """What an enqueue of this job ends with; None for an acknowledgement."""
    app = Fairlane(url)
    try:
        await app.enqueue("echo", tenant="acme", id=job)
    except Exception as error:
        return type(error)
    finally:
        await app.close()
    return None


@pytest.mark.scene
def test_a_wait_for_the_standby_that_somebody_broke_off_is_no_success(
    primary: Server, standby: Server, tmp_path: Path
) -> None:
    """PostgreSQL answers such a commit with a warning and calls it done. asyncpg drops warnings:
    the caller was told of a job that no standby had."""
    with scene("cancelled_sync_wait") as played, fleet_of(primary.url(), tmp_path) as fleet:
        wait_for_standby(primary)
        receiver = standby.named("walreceiver")
        os.kill(receiver, signal.SIGSTOP)
        try:
            job = uuid7()
            answers: list[Any] = []
            asking = threading.Thread(
                target=lambda: answers.append(asyncio.run(sent(primary.url(), job)))
            )
            asking.start()
            for statement in ("enqueue_many", "pg_logical_emit_message"):
                break_off(fleet.db, statement)  # the commit, and then what is to confirm it
                played.injected += 1
            asking.join(20)
            played.operations += 1
            played.check(
                "it is not told as done", [each for each in answers if each is not Unreplicated]
            )
            played.check("though it is there to see", missing(fleet.db, {job}))

            # Sent again it is found; but a job that no standby has is not to be acknowledged.
            asking = threading.Thread(
                target=lambda: answers.append(asyncio.run(sent(primary.url(), job)))
            )
            asking.start()
            asking.join(3)
            played.operations += 1
            played.check("nor when it is sent again", not asking.is_alive())
        finally:
            os.kill(receiver, signal.SIGCONT)
        asking.join(20)
        played.check("it is, once the standby has it", [each for each in answers[1:] if each])
        assert len(answers) == 2


async def sent(url: str, job: UUID) -> type[BaseException] | None:
    async with connected(url) as connection:
        request = {"tenant": "acme", "definition": "echo", "id": job, "resend": True}
        try:
            await send(connection, enqueue([request]))
        except Exception as error:
            return type(error)
    return None


def break_off(db: Db, statement: str) -> None:
    """As an administrator does who wonders about a statement that hangs."""
    waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep' and query like %s"
    row = until(
        lambda: db.execute(waiting, [f"%{statement}%"]).fetchone(),
        "a commit waits for the standby",
    )
    db.execute("select pg_cancel_backend(%s)", [row[0]])
