"""Docverse's API, as far as it makes jobs and tells of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from tables import create_tables
from tasks import SYSTEM, app, build_processing, edition_update

from fairlane import Enqueued, JobStatus
from fairlane.errors import IdInvalid, JobNotFound

STATUSES = {
    JobStatus.SCHEDULED: "queued",
    JobStatus.QUEUED: "queued",
    JobStatus.RUNNING: "in_progress",
    JobStatus.SUCCEEDED: "completed",
    JobStatus.SUCCEEDED_WITH_ERRORS: "completed_with_errors",
    JobStatus.FAILED: "failed",
    JobStatus.CANCELED: "cancelled",
}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    await create_tables(app.database_url)
    async with app:
        await app.create_tenant(SYSTEM, "pro", exists_ok=True)
        await app.register()  # the periodic jobs as well
        yield


web = FastAPI(title="Docverse", lifespan=lifespan)


class Uploaded(BaseModel):
    status: Literal["uploaded"]
    git_ref: str


class Reassigned(BaseModel):
    build: str


@web.put("/orgs/{org}")
async def sign_up(org: str) -> dict[str, str]:
    await app.create_tenant(org, "pro", exists_ok=True)
    return {"org": org}


@web.patch("/orgs/{org}/projects/{project}/builds/{build}", status_code=202)
async def uploaded(org: str, project: str, build: str, body: Uploaded) -> dict[str, str]:
    """A client has uploaded a build."""
    job = await build_processing.enqueue(
        tenant=org,
        concurrency_key=f"project:{project}",
        project=project,
        build=build,
        git_ref=body.git_ref,
    )
    return accepted(job)


@web.patch("/orgs/{org}/projects/{project}/editions/{slug}", status_code=202)
async def reassigned(org: str, project: str, slug: str, body: Reassigned) -> dict[str, str]:
    """In line behind whatever else changes this project's editions: no conflicts to detect."""
    job = await edition_update.enqueue(
        tenant=org,
        concurrency_key=f"project:{project}",
        project=project,
        slug=slug,
        build=body.build,
    )
    return accepted(job)


def accepted(job: Enqueued) -> dict[str, str]:
    return {"queue_url": f"/orgs/{job.tenant}/queue/jobs/{job.short_id}"}


@web.get("/orgs/{org}/queue/jobs/{job_id}")
async def show(org: str, job_id: str) -> dict[str, Any]:
    try:
        job = await app.get(job_id, tenant=org)
    except (JobNotFound, IdInvalid) as error:
        raise HTTPException(404, str(error)) from None
    return {
        "id": job.short_id,
        "kind": job.definition_key,
        "status": STATUSES[job.status],
        "phase": job.phase,
        "project": job.payload.get("project"),
        "build": job.payload.get("build"),
        "progress": progress(job.items) if job.items else job.progress,
        "errors": job.errors or [job.last_error] * (job.last_error is not None),
        "attempt": job.attempt_count,
        "date_created": job.created_at,
        "date_started": job.started_at,
        "date_completed": job.finished_at,
    }


def progress(items: dict[str, Any]) -> dict[str, Any]:
    failed = [{"slug": each["name"], "error": each["error"]} for each in items["failed"]]
    return {
        "editions_total": items["total"],
        "editions_completed": items["completed"],
        "editions_failed": failed,
        "editions_in_progress": items["in_progress"],
    }
