"""Docverse for its tests: the API, an organisation of one test, and the store its jobs call."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import httpx2
from fastapi import FastAPI, HTTPException, Request

from acceptance.stage import Example, Program
from support.workers import until

PATIENT = "3600"  # seconds of a lease: the clock is moved under it


@dataclass
class Store:
    """Object store, pointers, GitHub and vault. What is `held` waits for the test, what is `broken`
    fails."""

    url: str = ""
    held: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)  # paths, in order
    dashboards: dict[str, str] = field(default_factory=dict)

    def application(self) -> FastAPI:
        app = FastAPI(openapi_url=None)

        @app.middleware("http")
        async def control(request: Request, call_next: Any) -> Any:
            self.asked.append(request.url.path)
            name = request.url.path.rsplit("/", 1)[-1]
            while name in self.held:
                await asyncio.sleep(0.01)
            return await call_next(request)

        def check(name: str) -> None:
            if name in self.broken:
                raise HTTPException(504, "R2 timeout after 3 retries")

        @app.get("/builds/{build}")
        async def objects(build: str) -> list[dict[str, Any]]:
            check(build)
            return [{"key": f"{build}/index.html", "bytes": 512}]

        @app.put("/editions/{project}/{slug}")
        async def point(project: str, slug: str) -> None:
            check(slug)

        @app.put("/dashboards/{project}")
        async def dashboard(project: str, body: dict[str, str]) -> None:
            self.dashboards[project] = body["html"]

        @app.get("/refs")
        async def refs() -> list[str]:
            check("refs")
            return ["main"]

        @app.get("/key")
        async def key() -> dict[str, int]:
            return {"version": 2}

        @app.post("/rewrap")
        async def rewrap(request: Request) -> str:
            ciphertext: str = await request.json()
            return "vault:v2:" + ciphertext.split(":", 2)[2]

        return app


@dataclass
class House:
    """The API, and an organisation that is this test's own."""

    example: Example
    web: httpx2.Client
    store: Store
    org: str

    def edition(self, slug: str, tracks: str, **columns: Any) -> None:
        values = {"org": self.org, "project": "42", "slug": slug, "tracks": tracks, **columns}
        names, marks = ", ".join(values), ", ".join(["%s"] * len(values))
        insert = f"insert into edition ({names}) values ({marks})"
        self.example.db.execute(insert, list(values.values()))

    def editions(self) -> dict[str, str | None]:
        """The build of each that is not deleted."""
        query = "select slug, build from edition where org = %s and deleted_at is null"
        return dict(self.example.db.execute(query, [self.org]).fetchall())

    def upload(self, build: str, git_ref: str = "main") -> str:
        """The URL of the job."""
        body = {"status": "uploaded", "git_ref": git_ref}
        return self._patch(f"builds/{build}", body)

    def reassign(self, slug: str, build: str) -> str:
        return self._patch(f"editions/{slug}", {"build": build})

    def _patch(self, what: str, body: dict[str, str]) -> str:
        answer = self.web.patch(f"/orgs/{self.org}/projects/42/{what}", json=body)
        assert answer.status_code == 202, answer.text
        url: str = answer.json()["queue_url"]
        return url

    def job(self, url: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.web.get(url).json()
        return shown

    def progress(self, url: str) -> dict[str, Any]:
        """Of its editions; empty before they are named."""
        said = self.job(url)["progress"] or {}
        return {"editions_in_progress": [], "editions_completed": [], **said}

    def until(self, url: str, **wanted: Any) -> dict[str, Any]:
        """The job, once it shows all this."""

        def is_so() -> bool:
            seen = self.job(url)
            return all(seen.get(name) == value for name, value in wanted.items())

        until(is_so, f"{url} shows {wanted}")
        return self.job(url)

    def worker(self, **environment: str) -> Program:
        variables = {"APP_SERVER_URL": self.store.url, "FAIRLANE_LEASE_SECONDS": PATIENT}
        return self.example.worker("--app", "tasks:app", **variables | environment)

    def fairlane(self, *arguments: str) -> Any:
        """What a command says as JSON."""
        done = self.example.fairlane(*arguments, "--json")
        assert done.popen.wait(30) == 0, done.log.read_text()
        return json.loads(done.log.read_text())
