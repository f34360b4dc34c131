"""An API on a database of its own, a tenant with callers of each role, and another tenant."""

from collections.abc import AsyncIterator

import pytest

from api.world import Caller, World, on_a_socket, world_of
from support.core import Core


@pytest.fixture
async def world(database: str, core: Core) -> AsyncIterator[World]:
    await core.a_tenant("acme")
    await core.a_tenant("other")
    await core.a_definition("a.task", arg_schema=SCHEMA)
    async with world_of(database, core) as found:
        yield found


SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "default": 1},
        "password": {"type": "string", "writeOnly": True},
    },
    "additionalProperties": False,
}


@pytest.fixture
async def viewer(world: World) -> Caller:
    return await world.caller("viewer", "acme")


@pytest.fixture
async def member(world: World) -> Caller:
    return await world.caller("member", "acme")


@pytest.fixture
async def admin(world: World) -> Caller:
    return await world.caller("admin", "acme")


@pytest.fixture
async def operator(world: World) -> Caller:
    return await world.caller("operator")


@pytest.fixture
async def worker(world: World) -> Caller:
    return await world.caller("worker")


@pytest.fixture
async def rival(world: World) -> Caller:
    """An admin of another tenant."""
    return await world.caller("admin", "other")


@pytest.fixture
async def served(world: World) -> AsyncIterator[str]:
    """The address of the same API on a real socket."""
    async with on_a_socket(world.app) as address:
        yield address
