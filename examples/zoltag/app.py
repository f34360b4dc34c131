"""Zoltag's application, as far as jobs come of it: it knows the tenants' providers, and says when
one of them changes. It enqueues nothing; what is to run then, the tenants' own triggers say."""

import hashlib
import hmac
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import asyncpg
import yaml
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from pydantic import BaseModel

from fairlane import Fairlane
from fairlane.errors import TenantNotFound

HERE = Path(__file__).parent
SECRET = os.environ.get("ZOLTAG_SECRET", "for-this-machine-only").encode()
TABLES = """
create table if not exists provider (
  id uuid primary key default gen_random_uuid(),
  tenant text not null,
  folder_path text not null
)"""

app = Fairlane()


@asynccontextmanager
async def lifespan(web: FastAPI) -> AsyncIterator[None]:
    async with app, asyncpg.create_pool(app.database_url, min_size=1) as web.state.pool:
        await web.state.pool.execute(TABLES)
        definitions = yaml.safe_load((HERE / "definitions.yaml").read_text())["definitions"]
        await app.apply_definitions(definitions)
        await app.create_tenant("bcg", "pro", exists_ok=True)
        yield


web = FastAPI(title="Zoltag", lifespan=lifespan)


async def signed(request: Request, x_signature: Annotated[str, Header()] = "") -> None:
    """As Dropbox signs: the body's HMAC, by the secret that both know."""
    expected = hmac.new(SECRET, await request.body(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, x_signature):
        raise HTTPException(403, "the signature does not fit the body")


class NewProvider(BaseModel):
    tenant: str
    folder_path: str = "/"


class Change(BaseModel):
    folder_path: str


@web.post("/api/providers", status_code=201, dependencies=[Depends(signed)])
async def connect(body: NewProvider) -> dict[str, Any]:
    async with web.state.pool.acquire() as connection, connection.transaction():
        insert = "insert into provider (tenant, folder_path) values ($1, $2) returning id::text"
        provider = await connection.fetchval(insert, body.tenant, body.folder_path)
        data = {"provider_id": provider, "folder_path": body.folder_path}
        try:
            await app.emit(
                "provider.connection.changed", data, tenant=body.tenant, connection=connection
            )
        except TenantNotFound as error:
            raise HTTPException(404, str(error)) from None
    return {"id": provider}


@web.post("/webhooks/dropbox/{provider_id}", status_code=202, dependencies=[Depends(signed)])
async def changed(
    provider_id: UUID, body: Change, x_notification_id: Annotated[str | None, Header()] = None
) -> dict[str, Any]:
    """The folder and the event are stored together, or neither is. A notification that Dropbox
    sends twice is one event."""
    async with web.state.pool.acquire() as connection, connection.transaction():
        update = "update provider set folder_path = $2 where id = $1 returning tenant"
        tenant = await connection.fetchval(update, provider_id, body.folder_path)
        if tenant is None:
            raise HTTPException(404, "there is no such provider")
        data = {"provider_id": str(provider_id), "folder_path": body.folder_path}
        event = await app.emit(
            "provider.folder.updated",
            data,
            tenant=tenant,
            id=x_notification_id,
            connection=connection,
        )
    return {"event_id": event.id}
