"""Slots per queue: `critical` always has its own."""

from collections.abc import Mapping


class Slots:
    """How many attempts may run at once in each queue, and how many do."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.used = dict.fromkeys(sizes, 0)

    def free(self) -> dict[str, int]:
        """The queues with room, and how much."""
        return {
            queue: size - self.used[queue]
            for queue, size in self.sizes.items()
            if size > self.used[queue]
        }

    def take(self, queue: str) -> None:
        self.used[queue] += 1

    def give_back(self, queue: str) -> None:
        self.used[queue] -= 1
