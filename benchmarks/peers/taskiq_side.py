"""Taskiq on a Redis list, its fastest broker, with no result backend."""

from typing import Any

from benchmarks.peers.job import run
from benchmarks.peers.side import OnRedis, Order, Place, Side
from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker


class TaskiqSide(OnRedis):
    slots = 100
    blocking = False
    one_at_a_time = False

    async def open(self, place: Place) -> None:
        self.broker = ListQueueBroker(place.redis)

        @self.broker.task(task_name="noop")
        async def noop(payload: dict[str, Any]) -> None:
            await run(payload)

        self.noop = noop
        await self.broker.startup()

    async def enqueue(self, order: Order) -> None:
        await self.noop.kiq(dict(order.payload))

    async def work(self, slots: int) -> None:
        await run_receiver_task(self.broker, max_async_tasks=slots, max_prefetch=slots)


def side() -> Side:
    return TaskiqSide()
