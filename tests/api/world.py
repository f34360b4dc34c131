"""The API of one database, called in this process, and callers with tokens of every role."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2
import uvicorn
from fastapi import FastAPI

from fairlane.access import tokens
from fairlane.access.roles import Role
from fairlane.api.app import asgi
from fairlane.api.doorway import doorway
from fairlane.api.limits import Limits
from fairlane.api.serving import Server, address_of, listen
from fairlane.config import Settings
from support.core import Core, Lease

HOST = "http://api.test"
NO_LIMITS = Limits(rate=0)


class Caller:
    """Somebody with a token; `get("/jobs")` is `GET /api/v1/jobs`."""

    def __init__(self, http: httpx2.AsyncClient, token: str | None, tenant: str | None) -> None:
        self.http = http
        self.token = token
        self.tenant = tenant

    @property
    def headers(self) -> dict[str, str]:
        found = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        if self.tenant is not None:
            found["X-Fairlane-Tenant"] = self.tenant
        return found

    async def call(self, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = {**self.headers, **options.pop("headers", {})}
        return await self.http.request(method, f"/api/v1{path}", headers=headers, **options)

    async def get(self, path: str, **params: Any) -> httpx2.Response:
        return await self.call("GET", path, params=params)

    async def post(self, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        if body is not None:
            options["json"] = body
        return await self.call("POST", path, **options)

    async def patch(self, path: str, body: Any) -> httpx2.Response:
        return await self.call("PATCH", path, json=body)

    async def delete(self, path: str) -> httpx2.Response:
        return await self.call("DELETE", path)

    def acting_for(self, tenant: str) -> "Caller":
        return Caller(self.http, self.token, tenant)


class World:
    """A database with its API."""

    worker: Caller

    def __init__(self, core: Core, app: FastAPI, http: httpx2.AsyncClient) -> None:
        self.core = core
        self.app = app
        self.http = http

    async def caller(self, role: str, tenant: str | None = None) -> Caller:
        made = await tokens.create(self.core.conn, Role(role), tenant=tenant)
        return Caller(self.http, made.token, None)

    def stranger(self, token: str | None = None) -> Caller:
        return Caller(self.http, token, None)

    async def _claimed(self, job: UUID) -> Lease:
        leases = await self.core.claim(await self.core.a_worker(), 50, "critical")
        return next(lease for lease in leases if lease.job_id == job)

    async def ended(self, tenant: str, key: str, result: Any = None, **fields: Any) -> str:
        """The id of a job that has succeeded; it passed by what waits in other queues."""
        job = await self.core.enqueue(tenant, key, queue="critical", **fields)
        lease = await self._claimed(job)
        await self.core.finish(lease, result=result)
        return str(job)

    async def died(self, tenant: str, key: str, **fields: Any) -> str:
        """The id of a job that is a dead letter."""
        job = await self.core.enqueue(tenant, key, queue="critical", max_attempts=1, **fields)
        lease = await self._claimed(job)
        assert await self.core.fail(lease) == "dead_letter"
        return str(job)


@asynccontextmanager
async def world_of(url: str, core: Core, limits: Limits = NO_LIMITS) -> AsyncIterator[World]:
    app = asgi(url, settings=Settings(), limits=limits)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url=HOST) as http,
    ):
        yield World(core, app, http)


@asynccontextmanager
async def on_a_socket(app: FastAPI, most: int = 4000) -> AsyncIterator[str]:
    """Serve an application, whose lifespan runs already, on a port of its own."""
    listening = listen("127.0.0.1", 0)
    server = Server(
        uvicorn.Config(app, lifespan="off", log_config=None, ws="none", http=doorway(most))
    )
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield address_of(listening)
    finally:
        server.should_exit = True
        server.force_exit = True
        await serving
        listening.close()
