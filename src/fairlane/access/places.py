"""So many at once of each tenant's, so that what one waits for is not waited for by all."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from fairlane.access.refusals import Busy

WAITING = 200  # that stand in line for one tenant's places


class Room:
    def __init__(self, places: int) -> None:
        self.free = asyncio.Semaphore(places)
        self.inside = 0


class Places:
    """Rooms by whose they are; one that nobody is in is forgotten."""

    def __init__(self, each: int, patience: float) -> None:
        self._each = each
        self._patience = patience
        self._rooms: dict[Hashable, Room] = {}

    @asynccontextmanager
    async def of(self, whose: Hashable | None) -> AsyncIterator[None]:
        """A place of `whose`; Busy when none is free in time. Nobody's places have no limit."""
        if whose is None:
            yield
            return
        room = self._rooms.setdefault(whose, Room(self._each))
        room.inside += 1
        try:
            await self._enter(room)
            try:
                yield
            finally:
                room.free.release()
        finally:
            room.inside -= 1
            if not room.inside:
                self._rooms.pop(whose, None)

    async def _enter(self, room: Room) -> None:
        if not room.free.locked():
            await room.free.acquire()
            return
        if room.inside > WAITING:
            raise too_much()
        try:
            async with asyncio.timeout(self._patience):
                await room.free.acquire()
        except TimeoutError:
            raise too_much() from None


def too_much() -> Busy:
    return Busy("too many calls of this tenant's are under way; try again in a moment")
