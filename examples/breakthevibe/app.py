"""BreakTheVibe: organisations have their sites crawled and checked. Each has a plan, and the plan
says how many of its pipelines run at once."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pipeline import app
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fairlane import Job, JobStatus
from fairlane.errors import JobNotFound


class Base(DeclarativeBase):
    pass


class Member(Base):
    __tablename__ = "member"
    token: Mapped[str] = mapped_column(primary_key=True)
    organisation: Mapped[str]
    role: Mapped[str]


class Project(Base):
    __tablename__ = "project"
    id: Mapped[int] = mapped_column(primary_key=True)
    organisation: Mapped[str]
    url: Mapped[str]
    rules_yaml: Mapped[str]


class SignUp(BaseModel):
    organisation: str
    plan: Literal["free", "starter", "pro"] = "free"


class NewProject(BaseModel):
    url: str
    rules_yaml: str = ""


@asynccontextmanager
async def lifespan(web: FastAPI) -> AsyncIterator[None]:
    url = app.database_url.replace("postgresql://", "postgresql+asyncpg://", 1)
    web.state.engine = create_async_engine(url)
    async with web.state.engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with app:
        yield
    await web.state.engine.dispose()


web = FastAPI(title="BreakTheVibe", lifespan=lifespan)


async def opened() -> AsyncIterator[AsyncSession]:
    async with AsyncSession(web.state.engine, expire_on_commit=False) as session:
        yield session


Session = Annotated[AsyncSession, Depends(opened)]
Bearer = Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]


async def require_viewer(session: Session, bearer: Bearer) -> Member:
    if member := await session.get(Member, bearer.credentials):
        return member
    raise HTTPException(401, "unknown token")


async def require_member(viewer: Annotated[Member, Depends(require_viewer)]) -> Member:
    if viewer.role != "member":
        raise HTTPException(403, "a viewer may only look")
    return viewer


Viewer = Annotated[Member, Depends(require_viewer)]
Writer = Annotated[Member, Depends(require_member)]


@web.post("/api/organisations", status_code=201)
async def sign_up(body: SignUp, session: Session) -> dict[str, str]:
    """The organisation, its people and its tenant: all of them, or none."""
    tokens = {role: secrets.token_urlsafe(16) for role in ("member", "viewer")}
    for role, token in tokens.items():
        session.add(Member(token=token, organisation=body.organisation, role=role))
    await app.create_tenant(body.organisation, body.plan, connection=session)
    await session.commit()
    return tokens


@web.post("/api/projects", status_code=201)
async def create_project(body: NewProject, who: Writer, session: Session) -> dict[str, int]:
    project = Project(organisation=who.organisation, url=body.url, rules_yaml=body.rules_yaml)
    session.add(project)
    await session.commit()
    return {"id": project.id}


@web.post("/api/projects/{project_id}/{stage}", status_code=202)
async def start(
    project_id: int, stage: Literal["crawl", "generate", "run"], who: Writer, session: Session
) -> dict[str, Any]:
    """Where BackgroundTasks were: the job is there once the transaction is."""
    project = await session.get(Project, project_id)
    if project is None or project.organisation != who.organisation:
        raise HTTPException(404, "Project not found")
    payload = {"project_id": project.id, **await inputs(stage, project, who.organisation)}
    job = await app.enqueue(
        f"pipeline.{stage}", payload, tenant=who.organisation, connection=session
    )
    await session.commit()
    return {"status": "accepted", "project_id": project.id, "job_id": str(job.id)}


async def inputs(stage: str, project: Project, organisation: str) -> dict[str, Any]:
    if stage == "crawl":
        return {"url": project.url}
    before = {"generate": "pipeline.crawl", "run": "pipeline.generate"}[stage]
    done = await app.jobs(tenant=organisation, definition_key=before, status="succeeded")
    latest = next((job for job in done if job.payload["project_id"] == project.id), None)
    if latest is None:
        raise HTTPException(409, f"{before} has not succeeded yet")
    rules = {"rules_yaml": project.rules_yaml} if stage == "generate" else {}
    return {**latest.result, **rules}


# Jobs --------------------------------------------------------------------------------------------


def shown(job: Job) -> dict[str, Any]:
    return {
        "id": str(job.id),
        "project_id": job.payload["project_id"],
        "stage": job.definition_key.removeprefix("pipeline."),
        "status": job.status,
        "attempt": job.attempt_count,
        "max_retries": job.max_attempts,
        "error_message": (job.last_error or {}).get("message"),
        "progress": job.progress,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }


async def the_job(job_id: str, who: Member) -> Job:
    try:
        return await app.get(job_id, tenant=who.organisation)
    except JobNotFound:
        raise HTTPException(404, "Job not found") from None


@web.get("/api/jobs")
async def list_jobs(
    who: Viewer, status: JobStatus | None = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> list[dict[str, Any]]:
    found = await app.jobs(tenant=who.organisation, status=status, limit=limit)
    return [shown(job) for job in found]


@web.get("/api/jobs/{job_id}")
async def get_job(job_id: str, who: Viewer) -> dict[str, Any]:
    job = await the_job(job_id, who)
    return {**shown(job), "result": job.result}


@web.delete("/api/jobs/{job_id}", status_code=204)
async def cancel_job(job_id: str, who: Writer) -> None:
    job = await the_job(job_id, who)
    if job.status not in (JobStatus.SCHEDULED, JobStatus.QUEUED):
        raise HTTPException(404, "Job not found or not in pending state")
    await app.cancel(job.id, tenant=who.organisation)
