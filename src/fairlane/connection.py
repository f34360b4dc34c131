"""`ctx.connection()`: a transaction that carries the tenant."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from fairlane.client.sync import Portal

if TYPE_CHECKING:
    import asyncpg

Acquire = Callable[[], Any]
T = TypeVar("T")

# Where a plain function's connection lives: in its worker's loop. A process of one job has none.
LOOP: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("fairlane_loop", default=None)
_PORTAL = Portal()

_CARRY = """\
select set_config('fairlane.tenant', $1, true),
       set_config('fairlane.tenant_id', $2, true)"""


class TenantConnection:
    """`async with` in a coroutine, `with` in a plain function. The transaction is committed at the
    end of the block, and rolled back if that raises."""

    def __init__(self, acquire: Acquire, tenant: str, tenant_id: UUID | None) -> None:
        self._acquire = acquire
        self._tenant = tenant
        self._tenant_id = tenant_id
        self._open = AsyncExitStack()

    async def __aenter__(self) -> "asyncpg.Connection":
        async with AsyncExitStack() as opening:
            connection: asyncpg.Connection = await opening.enter_async_context(self._acquire())
            await opening.enter_async_context(connection.transaction())
            await connection.execute(_CARRY, self._tenant, str(self._tenant_id))
            self._open = opening.pop_all()
        return connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._open.__aexit__(kind, error, traceback)

    def __enter__(self) -> "BlockingConnection":
        if _in_a_loop():
            raise RuntimeError("in a coroutine, it is: async with ctx.connection()")
        return BlockingConnection(_wait(self.__aenter__()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _wait(self.__aexit__(kind, error, traceback))


class BlockingConnection:
    """An asyncpg connection whose calls block: `rows = connection.fetch(...)`."""

    def __init__(self, connection: "asyncpg.Connection") -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)

        def blocking(*args: Any, **named: Any) -> Any:
            answer = method(*args, **named)
            return _wait(answer) if asyncio.iscoroutine(answer) else answer

        return blocking

    @contextmanager
    def transaction(self, **options: Any) -> Iterator[None]:
        """One within the other: a savepoint."""
        inner = self._connection.transaction(**options)
        _wait(inner.start())
        try:
            yield
        except BaseException:
            _wait(inner.rollback())
            raise
        _wait(inner.commit())


def _wait(call: Coroutine[Any, Any, T]) -> T:
    """Carries a call out in the loop of its connection, and blocks this thread until it is done."""
    loop = LOOP.get()
    if loop is None:
        return _PORTAL.run(call)
    return asyncio.run_coroutine_threadsafe(call, loop).result()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
