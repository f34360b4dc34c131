"""`inline`: has an app enqueue into a list instead of a database."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fairlane.app import Fairlane
from fairlane.client.aio import Pools
from fairlane.client.producer import Producer, Send
from fairlane.client.request import Request
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import (
    DatabaseUnavailable,
    DefinitionNotFound,
    RequestInvalid,
    TenantNotFound,
)
from fairlane.job import Enqueued
from fairlane.testing.attempts import AnyTask
from fairlane.testing.inlined import InlineJobs


@contextmanager
def inline(
    app: Fairlane, *, elsewhere: Collection[str] = (), connection: Any = None
) -> Iterator[InlineJobs]:
    """Keep what the app enqueues in the block, also with `connection=`, and run it on request.

    `elsewhere` names definitions that are not this app's: their jobs are kept and never run.
    `connection` is an asyncpg connection for `ctx.connection()`.
    """

    def task_of(request: Request) -> AnyTask | None:
        _refuse_what_the_database_would(request)
        task = app.tasks.get((request.definition_key, request.version or ""))
        if task is None and request.definition_key not in elsewhere:
            version = f" version {request.version}" if request.version else ""
            raise DefinitionNotFound(
                f'definition "{request.definition_key}"{version} is unknown; define it with '
                f'@app.job, or say: testing.inline(app, elsewhere=["{request.definition_key}"])'
            )
        return task

    jobs = InlineJobs(task_of, connection)
    producer = _Keeper(app, jobs)
    try:
        with app._sending_through(producer):
            yield jobs
    finally:
        producer.portal.close()


class _Keeper(Producer):
    """Hands requests to the list; whoever asks the database for something is told where he is."""

    def __init__(self, app: Fairlane, jobs: InlineJobs) -> None:
        super().__init__(_no_database, app.tasks)
        self.pools = _NoPools(_no_database)
        self._jobs = jobs

    async def send(self, requests: Sequence[Request], connection: Any) -> list[Enqueued]:
        return self._jobs.take(requests)

    def send_sync(self, requests: Sequence[Request], connection: Any) -> list[Enqueued]:
        return self._jobs.take(requests)

    async def define(self, send: Send) -> dict[tuple[str, str], str]:
        return dict.fromkeys(self._tasks, "same")

    async def bring(self, send: Send, triggers: Call) -> Sequence[Record]:
        return []  # nobody schedules here


class _NoPools(Pools):
    async def open(self) -> None:
        """An application that starts up under test finds nothing to connect to, and goes on."""


def _no_database() -> str:
    raise DatabaseUnavailable(
        "inside testing.inline there is no database to ask; look at its jobs.enqueued, or use "
        "testing.fresh_database"
    )


def _refuse_what_the_database_would(request: Request) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", request.tenant):
        raise TenantNotFound(
            f'tenant "{request.tenant}" is unknown; a slug is 1 to 63 of a-z, 0-9, _ and -'
        )
    for name in ("dedupe_key", "concurrency_key"):
        if len(getattr(request, name) or "") > 512:
            raise RequestInvalid(f"{name} must be 1 to 512 characters")
