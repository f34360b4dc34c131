"""The door lets in who is proven, and forgets at once who is revoked."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from access.estate import Estate
from access.provider import AUDIENCE, a_provider
from fairlane.access import tokens
from fairlane.access.acting import Database
from fairlane.access.door import Door
from fairlane.access.refusals import Forbidden, Unauthenticated
from fairlane.access.roles import Role
from fairlane.config import Settings
from fairlane.errors import TenantNotFound
from support.core import Core


@pytest.fixture
async def door(database: str, straight: Database) -> AsyncIterator[Door]:
    found = await Door.open(database, straight, Settings())
    yield found
    await found.close()


@pytest.mark.parametrize("nothing", [None, "", "secret", "a.b.c"])
async def test_without_a_token_nobody_comes_in(door: Door, nothing: str | None) -> None:
    with pytest.raises(Unauthenticated):
        await door.admit(nothing)


async def test_a_revoked_token_is_forgotten_at_once(door: Door, estate: Estate, core: Core) -> None:
    await asyncio.wait_for(door.revocations.listening.wait(), 10)
    made = await tokens.create(core.conn, Role.VIEWER, tenant="acme")
    heard = asyncio.get_running_loop().create_future()
    door.on_revoked(heard.set_result)
    await door.admit(made.token)
    await tokens.revoke(core.conn, made.id)
    assert await asyncio.wait_for(heard, 10) == made.id
    with pytest.raises(Unauthenticated):
        await door.admit(made.token)


async def test_who_could_not_hear_forgets_what_it_knew(
    door: Door, estate: Estate, core: Core
) -> None:
    """The connection that listens is cut, and the token revoked before it is back."""
    await asyncio.wait_for(door.revocations.listening.wait(), 10)
    made = await tokens.create(core.conn, Role.VIEWER, tenant="acme")
    await door.admit(made.token)
    await core.fetch(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where application_name = 'fairlane server revocations' and datname = current_database()"
    )
    async with asyncio.timeout(10):
        while door.revocations.listening.is_set():
            await asyncio.sleep(0.01)
    await tokens.revoke(core.conn, made.id)
    await asyncio.wait_for(door.revocations.listening.wait(), 10)
    with pytest.raises(Unauthenticated):
        await door.admit(made.token)


async def test_an_operator_acts_for_a_tenant_and_nobody_else_does(
    door: Door, estate: Estate, core: Core
) -> None:
    operator = await door.admit((await tokens.create(core.conn, Role.OPERATOR)).token)
    acting = await door.acting_for(operator, "acme")
    assert (acting.tenant_id, acting.role) == (estate.ids["acme"], Role.OPERATOR)
    for unknown in ("no-such", "\0", ""):
        with pytest.raises(TenantNotFound):
            await door.acting_for(operator, unknown)
    admin = estate.principal("acme")
    assert await door.acting_for(admin, "acme") is admin
    worker = await door.admit((await tokens.create(core.conn, Role.WORKER)).token)
    for who in (admin, worker):
        for tenant in ("globex", "no-such"):
            with pytest.raises(Forbidden):
                await door.acting_for(who, tenant)


async def test_tokens_and_sign_ins_come_in_by_the_same_door(
    database: str, server: Database, estate: Estate, core: Core
) -> None:
    async with a_provider() as provider:
        provider.new_key("one")
        settings = Settings(oidc_issuer=provider.issuer, oidc_audience=AUDIENCE)
        door = await Door.open(database, server, settings)
        try:
            who = await door.admit(provider.sign("one", tenant="globex", role="admin"))
            assert who.tenant_id == estate.ids["globex"]
            with pytest.raises(Unauthenticated):
                await door.admit(provider.sign("one", tenant="no-such"))
            made = await tokens.create(core.conn, Role.VIEWER, tenant="acme")
            assert (await door.admit(made.token)).tenant == "acme"
        finally:
            await door.close()
