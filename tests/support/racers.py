"""Real processes that all want the same jobs at once."""

import asyncio
import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import asyncpg

from support.core import Core, Lease

Answer = Counter[str]


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh interpreters: a fork would share this process's connections."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        # All are there before the race begins.
        for ready in [pool.submit(time.sleep, 0.05) for _ in range(count)]:
            ready.result(60)
        yield pool


def race(
    pool: ProcessPoolExecutor, count: int, run: Callable[..., Any], *args: Any
) -> "list[Future[Any]]":
    return [pool.submit(run, number, *args) for number in range(count)]


def run_worker(number: int, url: str, queues: list[str], seconds: float) -> Answer:
    """Claim, and end what was claimed in every way there is, until the time is over."""
    return asyncio.run(_worker(number, url, queues, seconds))


async def _worker(number: int, url: str, queues: list[str], seconds: float) -> Answer:
    dice = random.Random(number)
    conn = await asyncpg.connect(url)
    core = Core(conn)
    done: Answer = Counter()
    worker = await core.a_worker(1000)
    held: list[Lease] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        leases = await core.claim(worker, dice.randint(1, 6), dice.choice(queues))
        done["claimed"] += len(leases)
        held += leases
        dice.shuffle(held)
        # Some stay in hand for a round, so that gates are full most of the time.
        while held and dice.random() < 0.8:
            done[await _end_some(core, dice, held)] += 1
        if not leases and not held:
            await asyncio.sleep(0.002)
    if held:
        await core.finish(*held)
    await conn.close()
    return done


async def _end_some(core: Core, dice: random.Random, held: list[Lease]) -> str:
    match dice.choice(["finish", "finish", "finish", "fail", "snooze", "hand_back", "cancel"]):
        case "finish":
            batch, held[:] = held[:3], held[3:]
            assert len(await core.finish(*batch)) == len(batch)
            return "finish"
        case "fail":
            await core.fail(held.pop(), retry_after=0)
            return "fail"
        case "snooze":
            await core.snooze(held.pop(), 0)
            return "snooze"
        case "hand_back":
            await core.hand_back(held.pop())
            return "hand_back"
        case _:
            lease = held.pop()
            await core.cancel(lease.job_id)
            await core.canceled(lease)
            return "cancel"


def run_leader(number: int, url: str, seconds: float) -> Answer:
    return asyncio.run(_leader(url, seconds))


async def _leader(url: str, seconds: float) -> Answer:
    conn = await asyncpg.connect(url)
    core = Core(conn)
    done: Answer = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await core.tick()
        done["tick"] += 1
        await asyncio.sleep(0.02)
    await conn.close()
    return done


def run_producer(number: int, url: str, requests: list[dict[str, Any]], seconds: float) -> Answer:
    """Send what is asked for, in small batches, again and again."""
    return asyncio.run(_producer(number, url, requests, seconds))


async def _producer(
    number: int, url: str, requests: list[dict[str, Any]], seconds: float
) -> Answer:
    dice = random.Random(1000 + number)
    conn = await asyncpg.connect(url)
    core = Core(conn)
    done: Answer = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        batch = [dice.choice(requests) | {"priority": dice.randint(0, 3)} for _ in range(8)]
        done["enqueued"] += len(await core.enqueue_many(batch))
        await asyncio.sleep(dice.random() * 0.02)
    await conn.close()
    return done
