"""Docverse's jobs. Each user-facing operation is one job; what is parallel in it is asyncio's."""

import asyncio
import os
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import aiohttp

from fairlane import Fairlane, JobContext

STORE = os.environ.get("APP_SERVER_URL", "http://127.0.0.1:8082")
SYSTEM = "docverse"  # the tenant of what is nobody's
RETRIED: dict[str, Any] = {"max_attempts": 3, "retry_delays": [30, 120], "dead_letter": False}

app = Fairlane()


def store() -> aiohttp.ClientSession:
    """Objects, pointers of editions, git refs and keys: everything outside, behind one door."""
    return aiohttp.ClientSession(STORE, raise_for_status=True)


# Builds and editions ------------------------------------------------------------------------------


@app.job("build_processing", timeout=3600, **RETRIED)
async def build_processing(ctx: JobContext, project: str, build: str, git_ref: str) -> list[str]:
    """Each step may run again: what is done already is a no-op."""
    async with store() as http:
        ctx.phase("inventory")
        await catalog(ctx, http, project, build)
        ctx.phase("tracking")
        editions = await affected(ctx, project, git_ref)

        async def update(slug: str) -> None:
            async with ctx.item(slug):  # what it raises is this edition's failure; the others go on
                await point(ctx, http, project, slug, build)

        ctx.phase("editions")
        ctx.items(editions)
        await asyncio.gather(*map(update, editions))
        ctx.phase("dashboard")
        await render(ctx, http, project)
    return editions


@app.job("edition_update", **RETRIED)
async def edition_update(ctx: JobContext, project: str, slug: str, build: str) -> None:
    """An admin gives an edition another build: by hand, or to roll back."""
    async with store() as http:
        ctx.phase("editions")
        await point(ctx, http, project, slug, build)
        ctx.phase("dashboard")
        await render(ctx, http, project)


@app.job("dashboard_sync", **RETRIED)
@app.on("template.updated")
async def dashboard_sync(ctx: JobContext, template: str) -> None:
    """The dashboards of an organisation's projects, rendered by its new template."""
    async with ctx.connection() as db:
        rows = await db.fetch("select distinct project from edition where org = $1", ctx.tenant)
    async with store() as http:

        async def sync(project: str) -> None:
            async with ctx.item(project):
                await render(ctx, http, project, template)

        await asyncio.gather(*(sync(row["project"]) for row in rows))


async def catalog(ctx: JobContext, http: aiohttp.ClientSession, project: str, build: str) -> None:
    async with http.get(f"/builds/{build}") as answer:
        objects = await answer.json()
    ctx.progress(message=f"Cataloging {len(objects)} objects")
    upsert = """insert into build_object values ($1, $2, $3, $4, $5)
                    on conflict (org, project, build, key) do update set bytes = excluded.bytes"""
    rows = [(ctx.tenant, project, build, each["key"], each["bytes"]) for each in objects]
    async with ctx.connection() as db:
        await db.executemany(upsert, rows)


async def affected(ctx: JobContext, project: str, git_ref: str) -> list[str]:
    """The editions that track this ref; a ref that none of them names gets one of its own."""
    known = (
        "select slug, tracks from edition where org = $1 and project = $2 and deleted_at is null"
    )
    new = "insert into edition (org, project, slug, tracks) values ($1, $2, $3, $3)"
    async with ctx.connection() as db:
        editions = dict(await db.fetch(known, ctx.tenant, project))
        if git_ref not in editions.values():
            await db.execute(new, ctx.tenant, project, git_ref)
            editions[git_ref] = git_ref
    return sorted(slug for slug, tracks in editions.items() if fnmatch(git_ref, tracks))


async def point(
    ctx: JobContext, http: aiohttp.ClientSession, project: str, slug: str, build: str
) -> None:
    """Point an edition at a build; the history has the transition once."""
    await http.put(f"/editions/{project}/{slug}", json={"build": build})
    moved = """with moved as (update edition set build = $4, updated_at = now()
                               where org = $1 and project = $2 and slug = $3
                                 and build is distinct from $4
                              returning org, project, slug, build)
               insert into edition_build_history select * from moved"""
    async with ctx.connection() as db:
        await db.execute(moved, ctx.tenant, project, slug, build)


async def render(
    ctx: JobContext, http: aiohttp.ClientSession, project: str, template: str = "{editions}"
) -> None:
    shown = """select slug, build from edition
                where org = $1 and project = $2 and deleted_at is null order by slug"""
    async with ctx.connection() as db:
        rows = await db.fetch(shown, ctx.tenant, project)
    html = template.format(editions="\n".join(f"<li>{slug}: {build}" for slug, build in rows))
    await http.put(f"/dashboards/{project}", json={"html": html})


# Periodic jobs: tried twice, then left to the next run, which catches up --------------------------


def periodic(key: str, cron: str) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        job = app.job(key, max_attempts=2, retry_delays=[60], dead_letter=False)
        return app.cron(cron, tenant=SYSTEM, overlap="skip")(job(function))

    return decorate


@periodic("lifecycle_eval", "0 3 * * *")
async def lifecycle_eval(ctx: JobContext) -> str:
    stale = """update edition set deleted_at = now() where deleted_at is null
                  and updated_at < now() - interval '30 days' and slug <> '__main'"""
    async with ctx.connection() as db:
        return str(await db.execute(stale))


@periodic("git_ref_audit", "0 4 * * *")
async def git_ref_audit(ctx: JobContext) -> list[str]:
    """Editions whose ref is gone from GitHub, should its webhook not have come."""
    async with ctx.connection() as db, store() as http:
        async with http.get("/refs") as answer:
            refs = await answer.json()
        gone = """update edition set deleted_at = now()
                   where deleted_at is null and tracks !~ '[*]' and tracks <> all ($1::text[])
                  returning slug"""
        return [row["slug"] for row in await db.fetch(gone, refs)]


@periodic("purgatory_cleanup", "0 5 * * *")
async def purgatory_cleanup(ctx: JobContext) -> str:
    old = "delete from edition where deleted_at < now() - interval '30 days'"
    async with ctx.connection() as db:
        return str(await db.execute(old))


@periodic("credential_rewrap", "0 6 * * *")
async def credential_rewrap(ctx: JobContext) -> None:
    """Credentials under an older version of the key; the plaintext never leaves the vault."""
    async with store() as http:
        async with http.get("/key") as answer:
            latest = f"vault:v{(await answer.json())['version']}:%"
        async with ctx.connection() as db:
            rows = await db.fetch("select * from credential where ciphertext not like $1", latest)

        async def rewrap(org: str, ciphertext: str) -> None:
            change = "update credential set ciphertext = $2 where org = $1"
            async with ctx.item(org), ctx.connection() as db:
                answer = await http.post("/rewrap", json=ciphertext)
                await db.execute(change, org, await answer.json())

        await asyncio.gather(*(rewrap(*row) for row in rows))
