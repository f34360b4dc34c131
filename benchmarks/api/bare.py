"""The least that an API of jobs could do: one FastAPI route that makes one insert."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from fastapi import FastAPI
from pydantic import BaseModel

from fairlane.core.json import dumps

TABLE = """
create schema if not exists bare;
create table if not exists bare.job (
  id uuid primary key, definition_key text not null, payload jsonb not null,
  priority int not null, created_at timestamptz not null default now());
"""


class JobIn(BaseModel):
    definition_key: str
    payload: dict[str, Any] = {}
    priority: int = 100


class JobOut(JobIn):
    id: UUID


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with asyncpg.create_pool(os.environ["FAIRLANE_DATABASE_URL"], max_size=10) as pool:
        await pool.execute(TABLE)
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/jobs", status_code=202)
async def enqueue(job: JobIn) -> JobOut:
    made = uuid4()
    await app.state.pool.execute(
        "insert into bare.job (id, definition_key, payload, priority) values ($1, $2, $3, $4)",
        made,
        job.definition_key,
        dumps(job.payload),
        job.priority,
    )
    return JobOut(id=made, **job.model_dump())
