"""One app, used from anywhere: loops, threads, forks, and programs that just end."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

from fairlane import Fairlane
from support.shop import send_of

Db = psycopg.Connection[tuple[Any, ...]]


def numbers(db: Db) -> list[Any]:
    rows = db.execute("select (payload ->> 'number')::int as n from fairlane.jobs order by n")
    return [row[0] for row in rows.fetchall()]


def sessions(db: Db) -> int:
    """How many connections of ours the server has."""
    row = db.execute(
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and application_name = 'fairlane'"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_nothing_is_connected_before_the_first_use(app: Fairlane, db: Db) -> None:
    send_of(app).request(tenant="acme", number=1)
    assert sessions(db) == 0

    send_of(app).enqueue_sync(tenant="acme", number=1)
    assert sessions(db) == 1


def test_two_loops_at_once_do_not_share_a_connection(app: Fairlane, db: Db) -> None:
    meet = threading.Barrier(2, timeout=30)

    async def enqueue(first: int) -> None:
        for number in range(first, first + 10):
            meet.wait()
            await send_of(app).enqueue(tenant="acme", number=number)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda first: asyncio.run(enqueue(first)), [0, 10]))

    assert numbers(db) == list(range(20))


def test_a_loop_that_ends_takes_its_connections_along(app: Fairlane, db: Db) -> None:
    async def enqueue(number: int) -> int:
        await send_of(app).enqueue(tenant="acme", number=number)
        return sessions(db)

    assert [asyncio.run(enqueue(number)) for number in range(3)] == [1, 1, 1]
    wait_until(lambda: sessions(db) == 0)
    assert numbers(db) == [0, 1, 2]


def test_any_number_of_threads_share_one_portal(app: Fairlane, db: Db) -> None:
    def enqueue(number: int) -> None:
        send_of(app).enqueue_sync(tenant="acme", number=number)

    others = {thread for thread in threading.enumerate() if thread.name == "fairlane"}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(enqueue, range(40)))

    assert numbers(db) == list(range(40))
    portals = {thread for thread in threading.enumerate() if thread.name == "fairlane"}
    assert len(portals - others) == 1


async def test_a_sync_call_inside_a_running_loop_just_blocks(app: Fairlane, db: Db) -> None:
    send_of(app).enqueue_sync(tenant="acme", number=1)

    assert numbers(db) == [1]


async def test_closing_closes_all_and_the_next_use_opens_again(app: Fairlane, db: Db) -> None:
    async with app:
        await send_of(app).enqueue(tenant="acme", number=1)
        send_of(app).enqueue_sync(tenant="acme", number=2)
        assert sessions(db) == 2
    wait_until(lambda: sessions(db) == 0)

    await send_of(app).enqueue(tenant="acme", number=3)
    send_of(app).enqueue_sync(tenant="acme", number=4)
    await app.close()
    wait_until(lambda: sessions(db) == 0)
    assert numbers(db) == [1, 2, 3, 4]


async def test_many_at_once_wait_for_each_other_not_for_ever(app: Fairlane, db: Db) -> None:
    async with app:
        await asyncio.gather(*(send_of(app).enqueue(tenant="acme", number=n) for n in range(60)))

    assert numbers(db) == list(range(60))


async def test_a_call_that_is_canceled_leaves_the_pool_in_order(app: Fairlane, db: Db) -> None:
    send = send_of(app)
    async with app:
        await send.enqueue(tenant="acme", number=0)
        with psycopg.connect(db.info.dsn) as other:
            other.execute("lock table fairlane.job in exclusive mode")
            for number in range(1, 4):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await send.enqueue(tenant="acme", number=number)
        await asyncio.gather(*(send.enqueue(tenant="acme", number=n) for n in range(10, 30)))

    assert numbers(db) == [0, *range(10, 30)]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own(app: Fairlane, db: Db) -> None:
    send_of(app).enqueue_sync(tenant="acme", number=0)

    for child in (1, 2):
        assert forked(partial(send_of(app).enqueue_sync, tenant="acme", number=child)) == 0
        # The parent's connection was neither used nor closed by the child.
        send_of(app).enqueue_sync(tenant="acme", number=10 * child)

    assert numbers(db) == [0, 1, 2, 10, 20]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_other_threads_work_is_not_stuck(
    app: Fairlane, db: Db
) -> None:
    app.register_sync()
    stop = threading.Event()

    def enqueue() -> None:
        while not stop.is_set():
            send_of(app).enqueue_sync(tenant="acme", number=0)

    with ThreadPoolExecutor(2) as threads:
        busy = [threads.submit(enqueue) for _ in range(2)]
        ended = [
            forked(partial(send_of(app).enqueue_sync, tenant="acme", number=child))
            for child in range(1, 6)
        ]
        stop.set()
        for each in busy:
            each.result()

    assert ended == [0] * 5
    assert sorted(set(numbers(db))) == [0, 1, 2, 3, 4, 5]


async def test_a_child_forked_from_a_running_loop_starts_afresh(app: Fairlane, db: Db) -> None:
    async with app:
        await send_of(app).enqueue(tenant="acme", number=0)

        def child() -> None:
            asyncio.run(send_of(app).enqueue(tenant="acme", number=1))

        assert forked(child) == 0
        await send_of(app).enqueue(tenant="acme", number=2)

    assert numbers(db) == [0, 1, 2]


def test_a_child_that_goes_on_with_its_parents_loop_does_not_take_its_connection(
    app: Fairlane, database: str, db: Db
) -> None:
    def enqueue(number: int) -> None:
        runner.run(send_of(app).enqueue(tenant="acme", number=number))

    def in_the_child(number: int) -> None:
        enqueue(number)
        with psycopg.connect(database) as look:
            assert sessions(look) == 2  # the parent's, and its own

    with asyncio.Runner() as runner:
        enqueue(0)
        for child in (1, 2):
            assert forked(partial(in_the_child, child)) == 0
            wait_until(lambda: sessions(db) == 1)
            enqueue(10 * child)

    assert numbers(db) == [0, 1, 2, 10, 20]


PROGRAM = """
import asyncio, sys, threading
sys.path[:0] = {path!r}
from support.shop import send_of, shop
app = shop({url!r})
send = send_of(app)
{body}
"""


@pytest.mark.parametrize(
    "body",
    [
        'send.enqueue_sync(tenant="acme", number=1)',
        'asyncio.run(send.enqueue(tenant="acme", number=1))',
        'asyncio.run(send.enqueue(tenant="acme", number=1)); app.register_sync()',
        'threading.Thread(target=lambda: send.enqueue_sync(tenant="acme", number=1)).start()',
        'import atexit; atexit.register(lambda: send.enqueue_sync(tenant="acme", number=1))',
        'import os; send.enqueue_sync(tenant="acme", number=1); os.fork() and os.wait()',
        'send.enqueue_sync(tenant="acme", number=1); del app, send; import gc; gc.collect()',
        "import uvloop; uvloop.run(send.enqueue(tenant='acme', number=1))",
    ],
)
def test_a_program_ends_without_a_word_when_it_is_done(database: str, db: Db, body: str) -> None:
    program = PROGRAM.format(path=[p for p in sys.path if p], url=database, body=body)

    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert numbers(db) == [1]


def test_the_thread_is_gone_before_the_interpreter_is(database: str, db: Db) -> None:
    """A daemon thread that is cut off in the middle of something may take the process down."""
    last = "import atexit, threading; atexit.register(lambda: print(threading.active_count()))"
    program = PROGRAM.format(
        path=[p for p in sys.path if p],
        url=database,
        body='send.enqueue_sync(tenant="acme", number=1); print(threading.active_count())',
    )

    done = subprocess.run([sys.executable, "-c", last + program], capture_output=True, check=True)

    assert done.stdout == b"2\n1\n"


def test_a_pool_of_forked_processes_carries_the_app_along(app: Fairlane, db: Db) -> None:
    send_of(app).enqueue_sync(tenant="acme", number=0)
    app.close_sync()  # so that no thread is there to fork beside
    carried[:] = [app]

    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(enqueue_with_carried, range(1, 9))

    assert numbers(db) == list(range(9))


carried: list[Fairlane] = []


def enqueue_with_carried(number: int) -> None:
    send_of(carried[0]).enqueue_sync(tenant="acme", number=number)


def forked(work: Callable[[], Any]) -> int:
    """Run something in a fork of this process; its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def wait_until(condition: Callable[[], bool]) -> None:
    """The server notices the end of a connection a moment later."""
    give_up = threading.Event()
    timer = threading.Timer(10, give_up.set)
    timer.start()
    try:
        while not condition():
            assert not give_up.is_set()
    finally:
        timer.cancel()
