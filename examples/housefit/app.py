"""HouseFit's API: it takes inputs by contract, and answers with a job. What computes is a server
behind HTTP, called by an ordinary `fairlane worker`; there is no code of ours in the worker."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from fastapi import FastAPI, Header, HTTPException, Response
from pydantic import BaseModel

from fairlane import Fairlane, JobStatus
from fairlane.errors import DefinitionNotFound, JobNotFound, PayloadInvalid

CONTRACTS = Path(__file__).parent / "contracts"
APP_SERVER = os.environ.get("APP_SERVER_URL", "http://127.0.0.1:8082")
TENANT = "housefit"

app = Fairlane()


def contracts() -> list[dict[str, Any]]:
    """contracts/<definition>/<version>/: what a job takes and gives, as JSON Schema."""
    return [
        {
            "key": folder.parent.name,
            "version": folder.name,
            "executor": "http",
            "http": {"url": APP_SERVER + "/gh/{definition}:{version}/solve", "allow_private": True},
            "arg_schema": json.loads((folder / "inputs.schema.json").read_text()),
            "result_schema": json.loads((folder / "outputs.schema.json").read_text()),
            "timeout_seconds": 240,
            "max_attempts": 5,
            "retry_delays": [1, 5, 15, 60],
            "reuse": True,
        }
        for folder in sorted(CONTRACTS.glob("*/*"))
    ]


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with app:
        await app.create_tenant(TENANT, "pro", exists_ok=True)
        await app.apply_definitions(contracts())
        yield


web = FastAPI(title="HouseFit", lifespan=lifespan)


class Envelope(BaseModel):
    definition: str
    version: str
    inputs: dict[str, Any]
    priority: int = 100


@web.post("/jobs/run", status_code=202)
async def run(
    body: Envelope, response: Response, x_correlation_id: Annotated[str | None, Header()] = None
) -> dict[str, str]:
    """Validated, completed with defaults and hashed before it is stored. The same inputs that have
    succeeded before answer with that job."""
    correlation_id = x_correlation_id or str(uuid4())
    try:
        job = await app.enqueue(
            body.definition,
            body.inputs,
            tenant=TENANT,
            version=body.version,
            priority=body.priority,
            correlation_id=correlation_id,
        )
    except PayloadInvalid as error:
        raise HTTPException(422, [fault._asdict() for fault in error.faults]) from None
    except DefinitionNotFound as error:
        raise HTTPException(404, str(error)) from None
    response.headers["x-correlation-id"] = correlation_id
    return {"job_id": str(job.id)}


@web.get("/jobs/status/{job_id}")
async def status(job_id: str) -> dict[str, Any]:
    job = await the_job(job_id)
    return {
        "job_id": str(job.id),
        "status": job.status,
        "attempts": job.attempt_count,
        "last_error": job.last_error,
    }


@web.get("/jobs/result/{job_id}")
async def result(job_id: str) -> dict[str, Any]:
    job = await the_job(job_id)
    if job.status is not JobStatus.SUCCEEDED:
        raise HTTPException(409, f"the job is {job.status}")
    return {"job_id": str(job.id), "outputs": job.result}


async def the_job(job_id: str) -> Any:
    try:
        return await app.get(job_id, tenant=TENANT)
    except JobNotFound as error:
        raise HTTPException(404, str(error)) from None
