"""What must hold, and a broken build must be seen to break. A check fails by an assertion."""

import os
import secrets
from unittest import mock

from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.core.calls import Call
from fairlane.executors.command.hearing import STREAMS
from fairlane.redact.known import KNOWN
from fairlane.redact.redactor import Redactor
from faults.builds.build import Check, Scene
from support.core import Core
from support.proxy import Cut, proxy_before
from support.runs import Run, calling
from support.shop import send_of, shop
from support.workers import Fleet, Process, fleet_of, until

SECRET = "hunter2-and-more"
MOST_CLAIMED = 8_192  # bytes of one job in the answer to a claim


def interleaved(*verbs: str, points: bool = True, switches: int | None = 1) -> Check:
    """These verbs at once are as one after the other, whoever is stopped on the way."""

    async def check(scene: Scene) -> None:
        async with scene.stage() as stage:
            before = stage.steps
            wrong = await stage.every(verbs, points=points, switches=switches, enough=1)
            scene.operations += stage.steps - before
        assert not wrong, wrong[0]

    return check


async def a_claim_is_answered_in_few_bytes(scene: Scene) -> None:
    """A result that fills the socket of one who does not read holds locks until he does."""
    async with scene.database() as db:
        core = db.core
        tenant, kind = await core.a_tenant(), await core.a_definition()
        await core.enqueue(tenant, kind, payload={"blob": secrets.token_hex(50_000)})
        sql = "select pg_column_size(c.*) from fairlane.claim($1, 'default', 1) c"
        size = await core.one(sql, await core.a_worker())
        scene.operations += 1
        assert size < MOST_CLAIMED, f"{size} bytes of one job"


async def the_next_request_on_a_connection_is_nobodys(scene: Scene) -> None:
    async with scene.database() as db:
        core = db.core
        tenant, kind = await core.a_tenant("acme"), await core.a_definition()
        await core.enqueue(tenant, kind)
        who = await principal(core, tenant)
        server = await Database.open(db.url, most=1)
        try:
            count = "select count(*) from fairlane.job"
            async with server.acting(who) as connection:
                assert await connection.fetchval(count) == 1
            (row,) = await server.send(Call(count))
            scene.operations += 2
            assert row[0] == 0, "who named no tenant saw the rows of the one before"
        finally:
            await server.close()


async def whoever_enqueues_enqueues_for_itself(scene: Scene) -> None:
    async with scene.database() as db:
        core = db.core
        mine, theirs = await core.a_tenant("acme"), await core.a_tenant("globex")
        kind = await core.a_definition()
        who = await principal(core, mine)
        server = await Database.open(db.url, most=1)
        try:
            await server.enqueue([(who, {"definition": kind, "tenant": theirs})])
        finally:
            await server.close()
        scene.operations += 1
        found = await core.fetch("select tenant from fairlane.jobs")
        assert [row[0] for row in found] == [mine]


async def principal(core: Core, tenant: str) -> Principal:
    tenant_id = await core.one("select id from fairlane.tenant where slug = $1", tenant)
    return Principal("token:test", Role.ADMIN, tenant, tenant_id)


async def a_job_whose_acknowledgement_was_lost_lands_once(scene: Scene) -> None:
    async with scene.database() as db:
        await db.core.a_tenant("acme")
        with proxy_before(db.url) as proxy:
            app = shop(proxy.url)
            async with app:
                await app.register()
                proxy.cut(Cut.AFTER_IT_IS_DONE)
                await send_of(app).enqueue(tenant="acme", number=1)
            assert proxy.done == [Cut.AFTER_IT_IS_DONE]
        scene.operations += 1
        jobs = await db.core.one("select count(*) from fairlane.jobs")
        assert jobs == 1, f"one enqueue became {jobs} jobs"


async def no_half_of_a_secret_is_left_where_output_is_cut(scene: Scene) -> None:
    with mock.patch.dict(os.environ, FAIRLANE_SECRET_API_KEY=SECRET), KNOWN.during([SECRET]):
        run = Run(calling("leaks", "TOKEN", "65530", "9000"), env={"TOKEN": "{secret.api-key}"})
        await run.outcome()
        shown = [Redactor().text(run.told.last(stream)[0]) for stream in STREAMS]
    scene.operations += 1
    for text in shown:
        for size in range(4, len(SECRET)):
            assert SECRET[:size] not in text
            assert SECRET[-size:] not in text


async def a_job_that_nobody_rang_for_is_found(scene: Scene) -> None:
    """The bell was lost: behind a pooler, by a listener that starts over. Polling finds the job."""
    async with scene.database() as db:
        with fleet_of(db.url, scene.folder) as fleet:
            worker(fleet, scene, ready=True)
            until(lambda: fleet.ask(IS_AT_REST), "the worker has asked and rests")
            with fleet.db.transaction():
                fleet.db.execute("update fairlane.doorbell set waiting_until = '-infinity'")
                job = fleet.enqueue("echo", '{"text": "here"}')
            scene.operations += 1
            fleet.until_status(job, "succeeded", within=6)


def worker(fleet: Fleet, scene: Scene, *, ready: bool) -> Process:
    return fleet.worker("default=2", ready=ready, **scene.environment)


# It has had time for more than the claims that it makes as it starts.
IS_AT_REST = """
select bool_and(waiting_until > fairlane.clock() + interval '5 seconds') is not null
   and exists (select from fairlane.worker
                where started_at < fairlane.clock() - interval '1.5 seconds')
  from fairlane.doorbell where queue = 'default' and waiting_until > fairlane.clock()
"""


async def a_worker_may_start_where_another_died(scene: Scene) -> None:
    """On the same host, while the lease of the first is not over yet."""
    async with scene.database() as db:
        with fleet_of(db.url, scene.folder) as fleet:
            worker(fleet, scene, ready=True).kill()
            second = worker(fleet, scene, ready=False)
            scene.operations += 1
            second.until_said("serves", within=8)
