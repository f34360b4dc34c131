"""Dramatiq with its usual middleware and eight threads a process, as it is started by default."""

import threading
from typing import Any

import dramatiq
from benchmarks.peers.job import run_now
from benchmarks.peers.side import OnRedis, Order, Place, Side
from dramatiq.brokers.redis import RedisBroker


class DramatiqSide(OnRedis):
    slots = 8
    blocking = True
    one_at_a_time = False

    async def open(self, place: Place) -> None:
        self.broker = RedisBroker(url=place.redis)  # type: ignore[no-untyped-call]
        dramatiq.set_broker(self.broker)

        @dramatiq.actor(actor_name="noop")
        def noop(payload: dict[str, Any]) -> None:
            run_now(payload)

        self.noop = noop

    def enqueue(self, order: Order) -> None:
        self.noop.send(dict(order.payload))

    def work(self, slots: int) -> None:
        dramatiq.Worker(self.broker, worker_threads=slots).start()
        threading.Event().wait()


def side() -> Side:
    return DramatiqSide()
