"""The verbs of the core, each on the world as it stands, and their answers in plain words."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from fairlane.core import calls
from fairlane.errors import FairlaneError
from fairlane.ids import uuid7
from fairlane.scheduler.dispatcher import Dispatcher
from fairlane.scheduler.firer import Firer
from faults.interleavings.playing import Verb
from faults.interleavings.points import ROW_BY_ROW
from faults.interleavings.world import World
from support.core import Core, Lease


def sql(text: str, *names: str) -> Callable[[World, Core], Awaitable[Any]]:
    """A call by its SQL; the arguments are attributes of the world, or workers of it."""

    async def call(world: World, core: Core) -> Any:
        args = [getattr(world, name, None) or world.workers[name] for name in names]
        return await core.one(text, *args)

    return call


async def finish_by_another(world: World, core: Core) -> Any:
    """The right number, from a worker that does not hold the job."""
    return await core.finish(replace(world.leases["running"], worker=world.workers["other"]))


async def enqueue_many(world: World, core: Core) -> Any:
    """For both tenants, one of them with a key."""
    return await core.enqueue_many(
        [
            {"tenant": world.other, "definition": "plain"},
            {"tenant": world.tenant, "definition": world.kind, "dedupe_key": "fresh"},
        ]
    )


def row_by_row(*items: dict[str, Any]) -> Verb:
    """A batch that can be stopped before each of its rows."""

    async def call(world: World, core: Core) -> Any:
        each = {"tenant": world.tenant, "definition": world.kind, "correlation_id": ROW_BY_ROW}
        return await core.enqueue_many([each | item for item in items])

    return Verb(call)


KEYS = [{"dedupe_key": key} for key in ("one", "two")]
IDS = [{"id": uuid7()} for _ in range(2)]


async def fail_many(world: World, core: Core) -> Any:
    leases = [world.leases["finishing"], world.leases["running"]]
    failures = [
        {"job_id": str(each.job_id), "attempt": each.attempt, "error": {"message": "no"}}
        for each in leases
    ]
    rows = await core.send(calls.fail_many(leases[0].worker, failures))
    return sorted(row["status"] for row in rows)


async def report(world: World, core: Core) -> Any:
    lease = world.leases["running"]
    said = {"job_id": str(lease.job_id), "attempt": lease.attempt, "phase": "half"}
    said |= {"items": [], "lines": [], "output": {}}
    return len(await core.send(calls.report(lease.worker, [said])))


async def emit(world: World, core: Core, name: str = "second") -> Any:
    event = {"tenant": world.tenant, "name": "thing.done", "data": {"thing": 2}, "id": name}
    return (await core.send(calls.emit([event])))[0]["duplicate"]


async def fire_due(world: World, core: Core) -> Any:
    return await Firer().tick(core.conn)


async def dispatch(world: World, core: Core) -> Any:
    return await Dispatcher().tick(core.conn)


async def resume(world: World, core: Core) -> Any:
    await core.send(calls.resume_tenant(world.tenant))


VERBS: dict[str, Verb] = {
    "enqueue": Verb(lambda w, c: c.ask(w.tenant, w.kind, id=w.new)),
    "enqueue again": Verb(lambda w, c: c.ask(w.tenant, w.kind, id=w.jobs["running"])),
    "enqueue keyed": Verb(lambda w, c: c.ask(w.tenant, w.kind, dedupe_key="key")),
    "enqueue fresh key": Verb(lambda w, c: c.ask(w.tenant, w.kind, dedupe_key="fresh")),
    "enqueue, undone": Verb(
        lambda w, c: c.ask(w.tenant, w.kind, dedupe_key="fresh"), commits=False
    ),
    "enqueue many": Verb(enqueue_many),
    "enqueue keys": row_by_row(*KEYS),
    "enqueue keys from behind": row_by_row(*reversed(KEYS)),
    "enqueue ids": row_by_row(*IDS),
    "enqueue ids from behind": row_by_row(*reversed(IDS)),
    "claim": Verb(lambda w, c: c.claim(w.workers["other"], 1), nothing=[], passes_by=True),
    "claim two": Verb(lambda w, c: c.claim(w.workers["alive"], 2), nothing=[], passes_by=True),
    "claim, undone": Verb(
        lambda w, c: c.claim(w.workers["other"], 1), commits=False, nothing=[], passes_by=True
    ),
    "finish": Verb(lambda w, c: c.finish(w.leases["running"])),
    "finish two": Verb(lambda w, c: c.finish(w.leases["finishing"], w.leases["running"])),
    "finish late": Verb(lambda w, c: c.finish(w.leases["lost"])),
    "finish by another": Verb(finish_by_another),
    "finish, undone": Verb(lambda w, c: c.finish(w.leases["running"]), commits=False),
    "fail": Verb(lambda w, c: c.fail(w.leases["running"], retry_after=0)),
    "fail for good": Verb(lambda w, c: c.fail(w.leases["running"], final=True)),
    "fail many": Verb(fail_many),
    "snooze": Verb(lambda w, c: c.snooze(w.leases["running"], 0)),
    "hand back": Verb(lambda w, c: c.hand_back(w.leases["running"])),
    "canceled": Verb(lambda w, c: c.canceled(w.leases["running"])),
    "heartbeat": Verb(lambda w, c: c.heartbeat(w.workers["alive"])),
    "heartbeat late": Verb(lambda w, c: c.heartbeat(w.workers["dead"])),
    "report": Verb(report, nothing=0),
    "stop worker": Verb(sql("select fairlane.stop_worker($1)", "alive")),
    "cancel running": Verb(lambda w, c: c.cancel(w.jobs["running"])),
    "cancel queued": Verb(lambda w, c: c.cancel(w.jobs["queued"])),
    "cancel due": Verb(lambda w, c: c.cancel(w.jobs["due"])),
    "cancel unswept": Verb(lambda w, c: c.cancel(w.jobs["unswept"])),
    "cancel keyed": Verb(lambda w, c: c.cancel(w.jobs["keyed"])),
    "move queued": Verb(lambda w, c: c.set_priority(w.jobs["queued"], 1)),
    "move unswept": Verb(lambda w, c: c.set_priority(w.jobs["unswept"])),
    "replay": Verb(lambda w, c: c.replay(w.jobs["parked"])),
    "resolve": Verb(lambda w, c: c.resolve(w.jobs["parked"])),
    "retry": Verb(lambda w, c: c.retry(w.jobs["ended"])),
    "retry old": Verb(lambda w, c: c.retry(w.jobs["old"])),
    "rescue": Verb(lambda w, c: c.rescue(), nothing=0),
    "park stuck": Verb(sql("select fairlane.park_stuck()"), nothing=0),
    "promote": Verb(lambda w, c: c.promote(), nothing=0),
    "sweep": Verb(lambda w, c: c.sweep(thorough=True)),
    "set tenant": Verb(lambda w, c: c.limit_tenant(w.tenant, max_running=3)),
    "set plan": Verb(lambda w, c: c.limit_plan("pro", max_running=2)),
    "lift limit": Verb(lambda w, c: c.a_definition(w.kind, max_attempts=2)),
    "set limit": Verb(lambda w, c: c.a_definition("long", max_running=1, timeout_seconds=5)),
    "pause": Verb(sql("select fairlane.pause_tenant($1)", "tenant")),
    "resume": Verb(resume),
    "prune": Verb(sql("select fairlane.prune()"), gives_up=True),
    "fire due": Verb(fire_due, nothing=0),
    "emit": Verb(emit),
    "emit again": Verb(lambda w, c: emit(w, c, "first")),
    "dispatch": Verb(dispatch, nothing=0),
}


def plain(world: World, verb: str, answer: Any) -> Any:
    """An answer as both orders would give it."""
    if isinstance(answer, FairlaneError):
        return type(answer).__name__
    if isinstance(answer, Exception):
        return f"{type(answer).__name__}: {answer}"
    names = {job: name for name, job in world.jobs.items()}
    if isinstance(answer, UUID):
        return names.get(answer, "new")
    if verb == "sweep":
        return None
    if verb.startswith("enqueue"):
        rows = answer if isinstance(answer, list) else [answer]
        return [(row["status"], row["deduplicated"]) for row in rows]
    if isinstance(answer, list):
        if not answer and verb.startswith(("finish", "fail many")):
            # It says of each job whether it was still this worker's; of the worker, by an error.
            return "LeaseLost"
        return sorted(_word(names, each) for each in answer)
    if verb == "hand back" and not answer:
        return "LeaseLost"
    return answer


def _word(names: dict[UUID, str], each: Any) -> str:
    match each:
        case Lease():
            return names.get(each.job_id, "new")
        case UUID():
            return names.get(each, "new")
        case str():
            return each
        case _:
            return f"{names.get(each['job_id'], 'new')} {each['cancel_requested']}"
