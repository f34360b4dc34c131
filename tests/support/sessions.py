"""Several sessions on one database, taken step by step; who waits for whom is read from the server.

A step that has to wait is left waiting while the others go on, as it would be in production.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg

from support.core import Core

DEADLINE = 10.0

# Where a test stops a session in the midst of a verb: a trigger that waits for an advisory lock.
PAUSE = """
create or replace function fairlane_test.pause() returns trigger language plpgsql as $$
begin
  if current_setting('fairlane_test.pause_at', true) = tg_argv[0] then
    perform pg_advisory_lock(1);
    perform pg_advisory_unlock(1);
  end if;
  return null;
end
$$;
create or replace trigger pause after {event} on fairlane.{table}
  for each statement execute function fairlane_test.pause('{event} {table}');
"""


class Session(Core):
    """One connection, with a watcher beside it that sees whether it waits."""

    def __init__(self, conn: "asyncpg.Connection[Any]", watcher: "asyncpg.Connection[Any]") -> None:
        super().__init__(conn)
        self.pid = conn.get_server_pid()
        self._watcher = watcher
        self.steps: list[asyncio.Task[Any]] = []

    async def begin(self) -> None:
        await self.conn.execute("begin")

    async def commit(self) -> None:
        await self.conn.execute("commit")

    async def rollback(self) -> None:
        await self.conn.execute("rollback")

    async def is_blocked(self) -> bool:
        found: bool = await self._watcher.fetchval(
            "select cardinality(pg_blocking_pids($1)) > 0", self.pid
        )
        return found

    async def start(self, step: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Begin a step; return when it is done, or waits for another session."""
        task = asyncio.create_task(step)
        self.steps.append(task)
        await self.until_done_or_blocked(task)
        return task

    async def until_done_or_blocked(self, task: "asyncio.Task[Any]") -> None:
        async with asyncio.timeout(DEADLINE):
            while not task.done() and not await self.is_blocked():
                await asyncio.wait([task], timeout=0.001)

    async def start_blocked(self, step: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Begin a step that has to wait."""
        task = await self.start(step)
        if task.done():
            raise AssertionError(f"the step did not wait: {task.exception() or task.result()!r}")
        return task

    async def pause_at(self, event: str, table: str) -> None:
        """Stop this session wherever it has just done that, while `held` holds the lock."""
        await self.conn.execute(PAUSE.format(event=event, table=table))
        await self.conn.execute(f"set fairlane_test.pause_at = '{event} {table}'")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold the lock that paused sessions wait for."""
        await self.conn.execute("select pg_advisory_lock(1)")
        try:
            yield
        finally:
            await self.conn.execute("select pg_advisory_unlock(1)")


async def done(task: "asyncio.Task[Any]") -> Any:
    """The answer of a step that may go on now."""
    async with asyncio.timeout(DEADLINE):
        return await task


@asynccontextmanager
async def sessions(url: str, count: int) -> AsyncIterator[list[Session]]:
    async with AsyncExitStack() as stack:
        conns = []
        for _ in range(count + 1):
            conn = await asyncpg.connect(url)
            # terminate(): a session that still waits cannot be asked to close.
            stack.callback(conn.terminate)
            conns.append(conn)
        found = [Session(conn, conns[-1]) for conn in conns[:-1]]
        stack.push_async_callback(_give_up, found)
        yield found


async def _give_up(found: Sequence[Session]) -> None:
    """End what a failed test has left waiting."""
    left = [step for session in found for step in session.steps if not step.done()]
    for session in found:
        session.conn.terminate()
    await asyncio.gather(*left, return_exceptions=True)
