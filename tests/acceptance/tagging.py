"""Zoltag in the tests: its API as a real server, its people, and the pictures of its tenants."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from acceptance.stage import Example, Program
from support.workers import until

PROVIDER = "7d1f2c34-5a6b-4c7d-8e9f-0a1b2c3d4e5f"
TOKEN = "sl.Dropb0xT0kenThatNobodyMaySee42"


class Person(httpx2.Client):
    """Somebody with a token; `get("/jobs")` is `GET /api/v1/jobs`."""

    def __init__(self, address: str, token: str | None, **headers: str) -> None:
        named = {} if token is None else {"Authorization": f"Bearer {token}"}
        super().__init__(
            base_url=f"{address}/api/v1", headers={**named, **headers}, timeout=30, trust_env=False
        )

    def shown(self, path: str, **params: Any) -> Any:
        answer = self.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def run(self, key: str, payload: dict[str, Any] | None = None, **options: Any) -> str:
        """The id of a new job."""
        body = {"definition_key": key, "payload": payload or {}, **options}
        answer = self.post("/jobs", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def until(self, job: str, *statuses: str) -> dict[str, Any]:
        def is_so() -> bool:
            return self.shown(f"/jobs/{job}")["status"] in statuses

        until(is_so, f"{job} is {' or '.join(statuses)}")
        found: dict[str, Any] = self.shown(f"/jobs/{job}")
        return found


@dataclass
class Zoltag:
    """A server on the example's database, and a library of pictures."""

    example: Example
    library: Path
    address: str = ""
    operator: Person = field(init=False)
    _people: dict[tuple[str, str], Person] = field(default_factory=dict)

    def __post_init__(self) -> None:
        server = self.example.fairlane("server", "--port", "0")
        server.until_said("listening on")
        said = server.log.read_text()
        self.address = re.findall(r"listening on (\S+)", said)[0]
        token = re.findall(r"operator token, shown this once: (\S+)", said)[0]
        self.operator = Person(self.address, token)

    def tenant(self, name: str) -> str:
        """A tenant of this test's own, with one provider: its slug."""
        slug = f"{name}-{uuid4().hex[:8]}"
        answer = self.operator.post("/admin/tenants", json={"slug": slug, "plan": "pro"})
        assert answer.status_code == 201, answer.text
        self.home(slug).joinpath("providers", PROVIDER).mkdir(parents=True)
        return slug

    def person(self, tenant: str, role: str = "admin") -> Person:
        if (tenant, role) not in self._people:
            body = {"role": role, "name": f"a {role}"}
            headers = {"X-Fairlane-Tenant": tenant}
            answer = self.operator.post("/tokens", json=body, headers=headers)
            assert answer.status_code == 201, answer.text
            self._people[tenant, role] = Person(self.address, answer.json()["token"])
        return self._people[tenant, role]

    def home(self, tenant: str) -> Path:
        query = "select id::text from fairlane.tenant where slug = %s"
        return self.library / str(self.example.ask(query, tenant))

    def picture(self, tenant: str, path: str, words: str) -> Path:
        file = self.home(tenant) / "providers" / PROVIDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(words)
        return file

    def slow_picture(self, tenant: str, path: str = "slow.jpg") -> Path:
        """Whoever reads it waits until somebody writes."""
        file = self.home(tenant) / "providers" / PROVIDER / path
        os.mkfifo(file)
        return file

    def table(self, tenant: str, name: str) -> Any:
        return json.loads((self.home(tenant) / f"{name}.json").read_text())

    @property
    def environment(self) -> dict[str, str]:
        return {"ZOLTAG_LIBRARY": str(self.library), "FAIRLANE_SECRET_DROPBOX": TOKEN}

    def worker(self, *arguments: str, **environment: str) -> Program:
        return self.example.worker(*arguments, **self.environment, **environment)

    def defined(self) -> None:
        """The commands that may run, as the example's file has them."""
        applied = self.example.fairlane("definitions", "apply", "definitions.yaml", "--yes")
        assert applied.popen.wait(30) == 0, applied.log.read_text()

    def close(self) -> None:
        for person in (self.operator, *self._people.values()):
            person.close()
