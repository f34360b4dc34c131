"""Items: the named parts of a job, each in progress, completed or failed with an error.

async def update(edition):
    async with ctx.item(edition):
        ...                       # what it raises is this item's failure; the others go on

await asyncio.gather(*map(update, editions))
"""

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Literal, Self

from fairlane.outcome import Fail, Snooze
from fairlane.saying.ledger import Ledger, State, name_of


class Item:
    """One item of the attempt. As a context manager, sync or async, it begins in progress and ends
    completed, or failed by what the block raised, which goes no further than this: an item that
    fails is counted and listed, and the task goes on. `Snooze`, `Fail` and being cancelled are
    about the task and do go further."""

    __slots__ = ("_ledger", "name")

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger = ledger
        self.name = name_of(name)

    def __repr__(self) -> str:
        return f'<item "{self.name}" {self.state or "not begun"}>'

    @property
    def state(self) -> State | None:
        """`in_progress`, `completed` or `failed`; None before it is begun."""
        return self._ledger.state(self.name)

    @property
    def error(self) -> str | None:
        return self._ledger.error(self.name)

    def start(self) -> Self:
        """Begin it; one that has ended begins anew."""
        self._ledger.move(self.name, "in_progress")
        return self

    def complete(self) -> None:
        """It is done. One that has failed stays failed unless it was begun anew."""
        self._ledger.move(self.name, "completed")

    def fail(self, error: str | BaseException) -> None:
        """It failed, and the task goes on."""
        self._ledger.move(self.name, "failed", error)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        match error:
            case None:
                self.complete()
            case Snooze():
                pass  # it is not over
            case _:
                self.fail(error)
        return isinstance(error, Exception) and not isinstance(error, Snooze | Fail)

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        return self.__exit__(kind, error, traceback)


class Items:
    """Several items, all in progress from the start:

        for item in ctx.items(names):
            with item: ...

    As a context manager it sees to it that none of them is left in progress.
    """

    def __init__(self, ledger: Ledger, names: Iterable[str] | None) -> None:
        if isinstance(names, str | bytes):
            raise TypeError(f"items take a list of names; for one of them, ctx.item({names!r})")
        self._ledger = ledger
        if names is None:
            self.names = ledger.names
        else:
            self.names = list(dict.fromkeys(map(name_of, names)))
            ledger.begin(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Item]:
        return (Item(self._ledger, name) for name in self.names)

    def __getitem__(self, name: str) -> Item:
        return Item(self._ledger, name)

    def start(self, name: str) -> None:
        self[name].start()

    def complete(self, name: str) -> None:
        self[name].complete()

    def fail(self, name: str, error: str | BaseException) -> None:
        self[name].fail(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        if not isinstance(error, Snooze):
            self._ledger.close("not finished" if error is None else error, self.names)
        return False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        return self.__exit__(kind, error, traceback)
