"""What one tenant's transaction may change: its own, by any verb, whatever the caller forgot."""

from uuid import UUID, uuid4

import asyncpg
import pytest

from access.estate import OPERATOR, WORKER, Estate
from fairlane.access.acting import Database
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.errors import JobNotFound, TenantNotFound
from support.core import Core


def explain(job: UUID, tenant: str | None) -> Call:
    return Call("select fairlane.explain($1, $2)", (job, tenant))


VERBS = {
    "cancel": (lambda e, t: calls.cancel(e.queued["globex"], None, t)),
    "explain": (lambda e, t: explain(e.queued["globex"], t)),
    "replay": (lambda e, t: calls.replay(e.dead["globex"], None, None, t)),
    "resolve": (lambda e, t: calls.resolve(e.dead["globex"], None, t)),
    "ignore": (lambda e, t: calls.ignore(e.dead["globex"], None, t)),
    "set_priority": (lambda e, t: calls.set_priority(e.queued["globex"], 1, t)),
    "assign_dead_letter": (lambda e, t: calls.assign_dead_letter(e.dead["globex"], "ada", t)),
    "reopen_dead_letter": (lambda e, t: calls.reopen_dead_letter(e.dead["globex"], t)),
    "retry": (lambda e, t: calls.retry(e.done["globex"], t)),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_anothers_job_looks_like_none(straight: Database, estate: Estate, verb: str) -> None:
    """The very same words as for an id that nobody has."""
    who = estate.principal("acme")

    async def told(call: Call) -> str:
        with pytest.raises(JobNotFound) as refused:
            async with straight.acting(who) as connection:
                await send(connection, call)
        return str(refused.value)

    foreign = VERBS[verb](estate, "acme")
    unknown = uuid4()
    said = await told(foreign)
    invented = Call(foreign.sql, (unknown, *foreign.args[1:]))
    assert said.replace(str(foreign.args[0]), "") == (await told(invented)).replace(
        str(unknown), ""
    )


@pytest.mark.parametrize("verb", VERBS)
async def test_a_forgotten_tenant_changes_nothing_of_anothers(
    server: Database, estate: Estate, core: Core, verb: str
) -> None:
    before = await snapshot(core)
    with pytest.raises((JobNotFound, asyncpg.InsufficientPrivilegeError)):
        async with server.acting(estate.principal("acme")) as connection:
            await send(connection, VERBS[verb](estate, None))
    assert await snapshot(core) == before


async def snapshot(core: Core) -> list[str]:
    rows = await core.fetch(
        "select j::text from fairlane.jobs j union all select d::text from fairlane.dead_letters d"
    )
    return sorted(row[0] for row in rows)


async def test_a_tenants_transaction_enqueues_for_no_other(
    server: Database, estate: Estate
) -> None:
    for definition in ("kind", "no-such-kind"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with server.acting(estate.principal("acme")) as connection:
                await send(
                    connection,
                    calls.enqueue(
                        [
                            {"tenant": "acme", "definition": "kind"},
                            {"tenant": "globex", "definition": definition},
                        ]
                    ),
                )


OPERATORS_VERBS = {
    "create_tenant": calls.create_tenant("mine", "pro", "", {}),
    "set_tenant": calls.set_tenant("globex", {"max_running": 0}),
    "pause_tenant": calls.pause_tenant("globex"),
    "set_tenant, its own": calls.set_tenant("acme", {"max_running": 9999}),
    "resume_tenant, its own": calls.resume_tenant("acme"),
    "set_plan": calls.set_plan("pro", {"max_running": 0}),
    "set_queue": calls.set_queue("default", {"slots": 1}),
    "pause_queue": calls.pause_queue("default"),
    "define": calls.define([{"key": "of-my-own"}]),
    "a token of another": Call(
        "select fairlane.create_token('aaaaaaaa', sha256('x'), 'admin', 'globex')"
    ),
    "a token of an operator": Call(
        "select fairlane.create_token('aaaaaaaa', sha256('x'), 'operator')"
    ),
}


@pytest.mark.parametrize("verb", OPERATORS_VERBS)
async def test_a_tenants_transaction_changes_nothing_that_is_everybodys(
    straight: Database, estate: Estate, verb: str
) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with straight.acting(estate.principal("acme")) as connection:
            await send(connection, OPERATORS_VERBS[verb])
    async with straight.acting(OPERATOR) as connection:
        await send(connection, OPERATORS_VERBS[verb])


NOBODY = uuid4()
WORKERS_VERBS = {
    "register_worker": lambda w: calls.register_worker(uuid4(), "mine", {"default": 4}),
    "claim": lambda w: calls.claim(w, "default", 4),
    "claim_queues": lambda w: calls.claim_queues(w, ["default"], [4]),
    "beat": lambda w: calls.beat(w),
    "heartbeat": lambda w: Call("select * from fairlane.heartbeat($1)", (w,)),
    "report": lambda w: calls.report(w, []),
    "prepare": lambda w: calls.prepare(w, [NOBODY], [1], [None], ["x"]),
    "finish": lambda w: calls.finish(w, [NOBODY], [1], ["null"]),
    "fail": lambda w: calls.fail(w, NOBODY, 1, {}),
    "fail_many": lambda w: calls.fail_many(w, []),
    "snooze": lambda w: calls.snooze(w, NOBODY, 1, 1),
    "canceled": lambda w: calls.canceled(w, NOBODY, 1),
    "bounce": lambda w: calls.bounce(w, NOBODY, 1),
    "hand_back": lambda w: calls.hand_back(w, [NOBODY], [1]),
    "stop_worker": lambda w: calls.stop_worker(w),
}


@pytest.mark.parametrize("verb", WORKERS_VERBS)
async def test_a_tenants_transaction_does_no_workers_work(
    straight: Database, estate: Estate, core: Core, verb: str
) -> None:
    """Also where it knows a worker's id: each of its jobs says which one ran it."""
    worker = await core.a_worker()
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="acts for one tenant"):
        async with straight.acting(estate.principal("acme")) as connection:
            await send(connection, WORKERS_VERBS[verb](worker))


async def test_the_cheap_way_refuses_a_call_without_the_tenant(
    straight: Database, estate: Estate, core: Core
) -> None:
    acme, job = estate.principal("acme"), estate.queued["globex"]
    with pytest.raises(ValueError, match="does not carry the tenant"):
        await straight.call(acme, explain(job, None))
    with pytest.raises(ValueError, match="does not carry the tenant"):
        await straight.call(acme, explain(job, "globex"))
    with pytest.raises(JobNotFound):
        await straight.call(acme, explain(job, "acme"))
    assert await straight.call(estate.principal("globex"), explain(job, "globex"))


async def test_an_enqueue_is_its_callers_whatever_the_item_says(
    server: Database, estate: Estate, core: Core
) -> None:
    rows = await server.enqueue(
        [
            (estate.principal(mine), {"definition": "kind", "tenant": other, "created_by": "root"})
            for mine, other in (("acme", "globex"), ("globex", "acme"))
        ]
    )
    jobs = [await core.job(row["id"]) for row in rows]
    assert [(job["tenant"], job["created_by"]) for job in jobs] == [
        ("acme", "admin@acme"),
        ("globex", "admin@globex"),
    ]
    with pytest.raises(ValueError, match="acts for no tenant"):
        await server.enqueue([(OPERATOR, {"definition": "kind", "tenant": "acme"})])


async def test_a_worker_claims_and_finishes_through_the_server(
    server: Database, estate: Estate, core: Core
) -> None:
    worker = uuid4()
    await server.call(WORKER, calls.register_worker(worker, "curl", {"default": 4}))
    held = await server.call(WORKER, calls.claim(worker, "default", 4))
    assert {row["tenant"] for row in held} == {"acme", "globex"}
    ids = [row["job_id"] for row in held]
    attempts = [row["attempt"] for row in held]
    assert len(await server.call(WORKER, calls.beat(worker))) == len(held)
    done = await server.call(WORKER, calls.finish(worker, ids, attempts, ["null"] * len(ids)))
    assert {row[0] for row in done} == set(ids)
    await core.assert_books_balance()


async def test_a_list_of_anothers_jobs_is_refused_like_an_unknown_tenants(
    server: Database, estate: Estate
) -> None:
    newest = "select * from fairlane.newest_jobs(tenant => $1)"
    async with server.acting(estate.principal("acme")) as connection:
        assert await send(connection, Call(newest, ("acme",)))
    for tenant in ("globex", "no-such-tenant"):
        with pytest.raises(TenantNotFound):
            async with server.acting(estate.principal("acme")) as connection:
                await send(connection, Call(newest, (tenant,)))


@pytest.mark.parametrize(
    "statement",
    [
        "insert into fairlane.audit (at, actor, action, target) values (now(), 'x', 'y', 'z')",
        "update fairlane.audit set actor = 'somebody else'",
        "delete from fairlane.audit",
        "update fairlane.job set tenant_id = gen_random_uuid()",
        "delete from fairlane.history",
        "update fairlane.token set role = 'operator', tenant_id = null",
        "select hash from fairlane.token",
        "select fairlane.grant_access()",
        "select fairlane.note_change('x', null, 'y')",
        "select fairlane.note_settings('x', null, 'y', '{}')",
        "select fairlane.sweep()",
        "select fairlane.create_first_token('aaaaaaaa', sha256('x'))",
        "create table fairlane.mine (id int)",
        "alter table fairlane.job disable row level security",
        "set local row_security = off; select from fairlane.job",
    ],
)
async def test_the_server_itself_may_not(
    straight: Database, estate: Estate, statement: str
) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with straight.acting(OPERATOR) as connection:
            await connection.execute(statement)
