"""Dartwing's door: organisations sign up, and their users start methods."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from permissions import create_tables
from pydantic import BaseModel
from router import enqueue_with_isolation
from tasks import app

from fairlane.errors import DefinitionNotFound, PayloadInvalid, TenantNotFound


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    await create_tables(app.database_url)
    async with app:
        await app.register()
        yield


web = FastAPI(title="Dartwing", lifespan=lifespan)


class Call(BaseModel):
    method: str
    organization: str
    kwargs: dict[str, Any] = {}


@web.put("/api/organizations/{organization}")
async def sign_up(organization: str) -> dict[str, str]:
    await app.create_tenant(organization, "pro", exists_ok=True)
    return {"organization": organization}


@web.post("/api/jobs", status_code=202)
async def enqueue(call: Call) -> dict[str, Any]:
    try:
        job = await enqueue_with_isolation(call.method, call.organization, **call.kwargs)
    except (DefinitionNotFound, TenantNotFound) as error:
        raise HTTPException(404, str(error)) from None
    except PayloadInvalid as error:
        raise HTTPException(422, str(error)) from None
    return {"job_id": str(job.id), "queue": job.queue, "job_limit_warning": job.warning}
