"""Histories as they should be, told step by step; and then one step that should not be."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from faults.checks.enqueues import ENQUEUES
from faults.history import Body, Call, Change, Final, History, Injected

TENANT, LEASE = "t-acme", 3.0


@dataclass
class Story:
    at: float = 120.0
    lsn: int = 0
    changes: list[Change] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    injected: list[Injected] = field(default_factory=list)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    final: dict[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    drained: bool = True

    # Rows ------------------------------------------------------------------

    def commit(self, *rows: tuple[str, str, dict[str, Any]]) -> None:
        """One transaction."""
        self.at += 0.1
        self.lsn += 1
        for table, what, row in rows:
            told = {name: None if v is None else str(v) for name, v in row.items()}
            self.changes.append(Change(self.lsn, self.lsn, self.at, table, what, told))

    def begin(self, limit: int = 2) -> None:
        tenant = {"id": TENANT, "slug": "acme", "plan": "pro", "max_running": limit}
        self.commit(
            ("plan", "insert", {"name": "pro", "max_running": 10}),
            ("tenant", "insert", {**tenant, "paused_at": None}),
            ("definition", "insert", {"id": "d", "key": "quick", "max_running_per_tenant": None}),
        )

    def limit(self, to: int, *, audited: bool = True) -> None:
        row = {"id": TENANT, "slug": "acme", "plan": "pro", "max_running": to, "paused_at": None}
        audit = [("audit", "insert", {"action": "tenant.set", "target": "acme"})] if audited else []
        self.commit(("tenant", "update", row), *audit)

    def worker(self, name: str, pid: int) -> None:
        self.beat(name, pid, what="insert")

    def beat(self, name: str, pid: int, what: str = "update") -> None:
        until = datetime.fromtimestamp(self.at + 0.1 + LEASE, UTC).isoformat(sep=" ")
        row = {
            "id": name,
            "pid": pid,
            "state": "live",
            "lease_expires_at": until.removesuffix(":00"),
        }
        self.commit(("worker", what, row))

    def enqueue(self, job: str, op: str = "library", **more: Any) -> None:
        row = {
            "id": job,
            "tenant_id": TENANT,
            "definition_id": "d",
            "queue": "default",
            "status": "queued",
            "attempt": 0,
            "forgiven": 0,
            "lost": 0,
            "max_attempts": 3,
            "worker_id": None,
            "cancel_requested_at": None,
            "source": "manual",
            "dedupe_key": None,
            "concurrency_key": None,
            "correlation_id": f"c-{job}",
            "retry_of": None,
            "replays": 0,
            **more,
        }
        self.jobs[job] = row
        began = self.at
        self.commit(("job", "insert", row))
        if op in ENQUEUES:
            detail = {"id": job, "dedupe_key": more.get("dedupe_key")}
            name = row["correlation_id"]
            self.calls.append(Call(op, "acme", name, began, self.at + 0.1, "ok", job, detail))
        self.final[job] = "queued"

    def move(self, job: str, *, gate: int | None = None, **changes: Any) -> None:
        self.jobs[job].update(changes)
        self.commit(("job", "update", self.jobs[job]), *self.gates(gate))
        self.final[job] = self.jobs[job]["status"]

    def gates(self, running: int | None) -> list[tuple[str, str, dict[str, Any]]]:
        if running is None:
            return []
        row = {"id": "g", "scope": "tenant", "tenant_id": TENANT, "running": running}
        return [("gate", "update", row)]

    def claim(self, job: str, worker: str, pid: int = 1, *, gate: int | None = None) -> None:
        attempt = self.jobs[job]["attempt"] + 1
        self.move(job, status="running", worker_id=worker, attempt=attempt, gate=gate)
        self.body("start", job, pid)

    def body(self, what: str, job: str, pid: int = 1) -> None:
        self.at += 0.01
        row = self.jobs[job]
        number = row["attempt"] - row["forgiven"]
        said = f"{pid}.{job}.{row['attempt']}"
        self.bodies.append(Body(what, job, number, pid, self.at, said))

    def end(self, job: str, status: str = "succeeded", pid: int = 1, **changes: Any) -> None:
        self.body("end", job, pid)
        row = self.jobs[job]
        mark = f'{{"mark": "{pid}.{job}.{row["attempt"]}"}}'
        result = mark if status == "succeeded" else None
        gone = {**row, "status": status, "result": result, **changes}
        self.commit(("job", "delete", {"id": job}), ("history", "insert", gone))
        self.final[job] = status

    def bury(self, job: str) -> None:
        self.body("end", job)
        gone = {**self.jobs[job], "status": "pending"}
        self.commit(("job", "delete", {"id": job}), ("dead_letter", "insert", gone))
        self.final[job] = "dead_letter"

    def ask(self, op: str, job: str, outcome: str = "ok", **detail: Any) -> None:
        self.calls.append(Call(op, "acme", job, self.at, self.at + 0.05, outcome, job, detail))

    def fault(self, kind: str, seconds: float = 0.0, **detail: Any) -> None:
        detail = {"at": self.at, **detail}
        self.injected.append(Injected(kind, "", self.at, self.at + seconds, True, detail))

    def wait(self, seconds: float) -> None:
        self.at += seconds

    def told(self) -> History:
        end = self.at + 1
        final = Final(end, end if self.drained else None, self.final, self.left)
        return History(
            lease=LEASE,
            grace=2.0,
            calls=tuple(self.calls),
            changes=tuple(self.changes),
            bodies=tuple(self.bodies),
            injected=tuple(self.injected),
            final=final,
            ended=end,
        )


def begun() -> Story:
    """Two workers, and some work that went as it should."""
    story = Story()
    story.begin()
    story.worker("w1", 1)
    story.worker("w2", 2)
    story.enqueue("a")
    story.claim("a", "w1", gate=1)
    story.end("a")
    story.commit(*story.gates(0))
    return story
