"""A loop in a thread of its own: what it holds may be asked from any thread or loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Threaded:
    """Runs from the begin of a `with` to its end; `async with` does the same."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    async def _open(self) -> None:
        """In its thread, before anything else."""

    async def _close(self) -> None:
        """In its thread, after everything else."""

    def __enter__(self) -> Self:
        self._thread.start()
        self._ask(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ask(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _ask(self, step: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result(30)

    def _at_once(self, step: Callable[[], T]) -> T:
        if not self._thread.is_alive():  # before and after the block: nobody else is there
            return step()

        async def taken() -> T:
            return step()

        return self._ask(taken())
