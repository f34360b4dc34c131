"""The life of `fairlane top`: a look, a page, a key or a second, and again."""

import asyncio
from contextlib import suppress

import asyncpg

from fairlane.cli.session import Session, read_json
from fairlane.config import Settings
from fairlane.core import connect, migrate
from fairlane.errors import FairlaneError
from fairlane.top.page import KEYS, lines
from fairlane.top.sample import take
from fairlane.top.screen import Screen
from fairlane.top.view import Looks

AWAY: tuple[type[BaseException], ...] = (
    *(OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError),
    *(asyncpg.OperatorInterventionError, FairlaneError),
)
SORT_KEYS = {"d": "due", "r": "running", "t": "time", "n": "name"}


class Top:
    """The page, and what it was asked to show."""

    def __init__(self, url: str, settings: Settings, every: float, sort: str, screen: Screen):
        self._url = url
        self._settings = settings
        self._every = every
        self._sort = sort
        self._screen = screen
        self._looks = Looks()
        self._shown: dict[str, object] | None = None

    async def run(self) -> None:
        """Until somebody leaves. A database that goes away is waited for."""
        while True:
            try:
                async with connect.connected(self._url, name="fairlane top") as conn:
                    await migrate.check(conn)
                    await read_json(conn)
                    if not await self._follow(Session(conn, self._settings)):
                        return
            except AWAY as error:
                self._draw(f"the database is away: {' '.join(str(error).split())}")
                if not await self._next():
                    return

    async def _follow(self, db: Session) -> bool:
        while True:
            self._shown = self._looks.add(await take(db, self._sort))
            self._draw()
            if not await self._next():
                return False

    async def _next(self) -> bool:
        """Wait until it is time for another look; false when somebody leaves."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._every):
                while True:
                    key = await self._screen.keys.get()
                    if key.lower() == "q":
                        return False
                    if key == "resize":
                        self._draw()
                    elif key in SORT_KEYS:
                        self._sort = SORT_KEYS[key]
                        return True
                    elif key in " \n\r":
                        return True
        return True

    def _draw(self, trouble: str | None = None) -> None:
        across, down = self._screen.size
        page = lines(self._shown, across=across, down=down - 1) if self._shown else []
        foot = trouble or f"{KEYS}   (by {self._sort})"
        self._screen.show([*page, *[""] * (down - 1 - len(page)), foot[: across - 1]])
