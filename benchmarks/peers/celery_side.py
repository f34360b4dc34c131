"""Celery as its guide to optimizing says for short tasks: large prefetch, no results, no events."""

from typing import Any

from benchmarks.peers.job import run_now
from benchmarks.peers.side import OnRedis, Order, Place, Side
from celery import Celery

app = Celery("bench")
app.conf.update(
    worker_prefetch_multiplier=128,
    task_ignore_result=True,
    task_acks_late=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    broker_pool_limit=16,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")  # type: ignore[untyped-decorator]
def noop(payload: dict[str, Any]) -> None:
    run_now(payload)


class CelerySide(OnRedis):
    slots = 1  # a process of the pool runs one at a time; this is what "one process" means to it
    blocking = True
    one_at_a_time = False

    async def open(self, place: Place) -> None:
        app.conf.broker_url = place.redis

    def enqueue(self, order: Order) -> None:
        noop.apply_async((dict(order.payload),))

    def work(self, slots: int) -> None:
        app.worker_main(
            [
                *("worker", "--pool=prefork", f"--concurrency={slots}", "--loglevel=ERROR"),
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
                *("-Ofair",) * (slots > 1),
            ]
        )


def side() -> Side:
    return CelerySide()
