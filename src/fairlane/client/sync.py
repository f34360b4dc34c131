"""A portal for programs without an event loop: a thread that runs one for them."""

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """Runs coroutines from any thread and waits for them. Its own thread starts on first use."""

    def __init__(self) -> None:
        self._loop_of: dict[int, _LoopThread] = {}
        _portals.add(self)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._thread().loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C, while it was waited for
            raise

    @property
    def is_open(self) -> bool:
        return os.getpid() in self._loop_of

    def close(self) -> None:
        """Stop the thread, with whatever its loop still holds; the next `run` starts another."""
        if thread := self._loop_of.pop(os.getpid(), None):
            thread.stop()

    def _thread(self) -> "_LoopThread":
        # By process: a fork takes the object along and leaves the thread, and the locks that it
        # may hold, behind. What is the parent's is kept, untouched.
        here = os.getpid()
        thread = self._loop_of.get(here) or self._loop_of.setdefault(here, _LoopThread())
        return thread.started()


class _LoopThread:
    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def started(self) -> "_LoopThread":
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="fairlane", daemon=True)
                self._thread.start()
        self._ready.wait()
        return self

    def stop(self) -> None:
        if self._thread is None or self._thread is threading.current_thread():
            return
        self._ready.wait()
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        # On its way out the runner cancels what is left and lets pools close themselves.
        with asyncio.Runner() as runner:
            self.loop = runner.get_loop()
            self._ready.set()
            self.loop.run_forever()


_portals: "weakref.WeakSet[Portal]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for portal in list(_portals):
        portal.close()
