"""A query that forgets its `where` leaks nothing: straight, and through a PgBouncer."""

import asyncio
import random

import asyncpg
import pytest

from access.estate import CANARIES, HOLDING, OPERATOR, TENANTS, WORKER, Estate
from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import send
from support.core import Core

RELATIONS = """
select relname::text from pg_class
 where relnamespace = 'fairlane'::regnamespace and relkind in ('r', 'p', 'v')
 order by relname
"""


async def everything_seen(server: Database, who: Principal) -> dict[str, str]:
    """What each relation shows without any filter; those that may not be read are left out."""
    async with server.acting(who) as connection:
        names = [row[0] for row in await connection.fetch(RELATIONS)]
    seen: dict[str, str] = {}
    for name in names:
        try:
            async with server.acting(who) as connection:
                # The hash of a token is nobody's to read, so neither is the whole row.
                columns = "id, role, tenant_id, name" if name == "token" else "*"
                rows = await connection.fetch(f"select {columns} from fairlane.{name}")
        except asyncpg.InsufficientPrivilegeError:
            continue
        seen[name] = "\n".join(str(row) for row in rows)
    return seen


@pytest.mark.parametrize("tenant", TENANTS)
async def test_a_tenant_sees_its_own_rows_everywhere_and_no_other(
    server: Database, estate: Estate, tenant: str
) -> None:
    (other,) = set(TENANTS) - {tenant}
    seen = await everything_seen(server, estate.principal(tenant))
    assert set(seen) >= HOLDING
    for name, text in seen.items():
        assert CANARIES[other] not in text, f"{name} shows {tenant} what is {other}'s"
        assert str(estate.ids[other]) not in text, f"{name} shows {tenant} a row of {other}"
        if name in HOLDING:
            shown = CANARIES[tenant] in text or str(estate.ids[tenant]) in text
            assert shown, f"{name} does not show {tenant} its own"


async def test_an_operator_sees_everybodys_rows(server: Database, estate: Estate) -> None:
    seen = await everything_seen(server, OPERATOR)
    for name in HOLDING:
        for tenant in TENANTS:
            shown = CANARIES[tenant] in seen[name] or str(estate.ids[tenant]) in seen[name]
            assert shown, f"{name} lacks {tenant}'s"


async def test_an_operator_who_acts_for_a_tenant_sees_that_one_alone(
    server: Database, estate: Estate
) -> None:
    acting = OPERATOR.acting_for("acme", estate.ids["acme"])
    for name, text in (await everything_seen(server, acting)).items():
        assert CANARIES["globex"] not in text, name


async def test_who_acts_for_nobody_sees_nothing(server: Database, estate: Estate) -> None:
    of_no_tenant = {"definition", "plan", "queue", "queues", "setting", "migration", "repeatable"}
    for name, text in (await everything_seen(server, WORKER)).items():
        assert text == "" or name in of_no_tenant, f"{name}: {text}"
        assert not any(canary in text for canary in CANARIES.values()), name


async def test_a_connection_that_names_no_tenant_sees_nothing(
    server: Database, estate: Estate
) -> None:
    # Also right after it served somebody: what was set then is gone.
    for who in (estate.principal("acme"), OPERATOR):
        async with server.acting(who) as connection:
            assert await connection.fetch("select from fairlane.job")
        for name in ("job", "history", "jobs", "tenant", "token", "audit"):
            assert not await server.send(Call(f"select 1 from fairlane.{name}")), name


@pytest.mark.parametrize("scope", ["", "nonsense", "null", "00000000-0000-0000-0000-000000000000"])
async def test_a_scope_that_names_nobody_shows_nothing(
    straight: Database, estate: Estate, scope: str
) -> None:
    async with straight.pool.acquire() as connection, connection.transaction():
        await connection.fetch("select set_config('fairlane.tenant_id', $1, true)", scope)
        assert await connection.fetch("select from fairlane.jobs") == []


async def test_a_request_that_is_cancelled_leaves_nothing_for_the_next(
    server: Database, estate: Estate
) -> None:
    async def look(tenant: str) -> None:
        async with server.acting(estate.principal(tenant)) as connection:
            await connection.fetch("select pg_sleep($1)", random.random() / 200)
            rows = await connection.fetch("select correlation_id from fairlane.job")
        assert {row[0] for row in rows} == {CANARIES[tenant]}

    for _ in range(12):
        looks = [asyncio.create_task(look(random.choice(TENANTS))) for _ in range(20)]
        await asyncio.sleep(random.random() / 50)
        for victim in random.sample(looks, 8):
            victim.cancel()
        for answer in await asyncio.gather(*looks, return_exceptions=True):
            assert answer is None or isinstance(answer, asyncio.CancelledError), answer


async def test_the_actor_of_a_transaction_is_in_the_audit(
    server: Database, estate: Estate, core: Core
) -> None:
    who = estate.principal("acme")
    async with server.acting(who) as connection:
        await send(connection, calls.cancel(estate.queued["acme"], "no need", "acme"))
    actor = await core.one("select actor from fairlane.audit order by id desc limit 1")
    assert actor == who.subject


async def test_an_error_undoes_the_whole_block(
    server: Database, estate: Estate, core: Core
) -> None:
    async def half() -> None:
        async with server.acting(estate.principal("acme")) as connection:
            await send(connection, calls.cancel(estate.queued["acme"], "no need", "acme"))
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError):
        await half()
    assert await core.status(estate.queued["acme"]) == "queued"
