"""What a call of the command line leaves behind, and a hand on the database behind its back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from fairlane.core import json


@dataclass(frozen=True)
class Answer:
    """What a call left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def line(self) -> str:
        """The one line that a failure leaves on stderr, and nothing on stdout."""
        assert self.out == ""
        assert self.err.startswith("fairlane: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("fairlane: ").rstrip("\n")


Call = Callable[..., Answer]


class Floor:
    """The database, for what a test needs to be there first."""

    def __init__(self, conn: "psycopg.Connection[Any]") -> None:
        self.conn = conn

    def fetch(self, sql: str, *args: Any) -> list[Any]:
        cursor = self.conn.execute(sql, args)
        return cursor.fetchall() if cursor.description else []

    def one(self, sql: str, *args: Any) -> Any:
        rows = self.fetch(sql, *args)
        return rows[0][0] if rows else None

    def tenant(self, slug: str, plan: str = "pro", **limits: Any) -> str:
        self.one("select fairlane.create_tenant(%s, %s, '', %s)", slug, plan, Jsonb(limits))
        return slug

    def define(self, key: str, **fields: Any) -> str:
        self.fetch("select * from fairlane.define(%s)", Jsonb([{"key": key, **fields}]))
        return key

    def enqueue(self, tenant: str, key: str, **fields: Any) -> UUID:
        request = Jsonb([{"tenant": tenant, "definition": key, **fields}])
        found: UUID = self.one("select id from fairlane.enqueue_many(%s)", request)
        return found

    def worker(self, name: str = "w1", lease: float = 1_000_000, **queues: int) -> UUID:
        worker = uuid4()
        self.one(
            "select fairlane.register_worker(%s, %s, %s, hostname => 'h1', "
            "lease_seconds => %s::real)",
            worker,
            name,
            Jsonb(queues or {"default": 8}),
            lease,
        )
        return worker

    def claim(self, worker: UUID, slots: int = 1, queue: str = "default") -> list[Any]:
        return self.fetch(
            "select job_id, attempt from fairlane.claim(%s, %s, %s)", worker, queue, slots
        )

    def finish(self, worker: UUID, job: UUID, attempt: int, **result: Any) -> None:
        self.one(
            "select fairlane.finish(%s, %s, %s, %s::jsonb[])",
            worker,
            [job],
            [attempt],
            [Jsonb(result)],
        )

    def fail(self, worker: UUID, job: UUID, attempt: int, message: str = "it broke") -> str:
        error = Jsonb({"type": "Oops", "message": message})
        status: str = self.one("select fairlane.fail(%s, %s, %s, %s)", worker, job, attempt, error)
        return status

    def ended(self, tenant: str, key: str, **result: Any) -> UUID:
        """A job that has succeeded."""
        job, worker = self.enqueue(tenant, key), self.worker()
        ((claimed, attempt),) = self.claim(worker)
        assert claimed == job
        self.finish(worker, job, attempt, **result)
        return job

    def died(self, tenant: str, key: str, message: str = "it broke", **fields: Any) -> UUID:
        """A job that is a dead letter."""
        job, worker = self.enqueue(tenant, key, max_attempts=1, **fields), self.worker()
        ((claimed, attempt),) = self.claim(worker)
        assert claimed == job
        assert self.fail(worker, job, attempt, message) == "dead_letter"
        return job
