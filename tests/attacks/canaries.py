"""An unguessable string in every field that a tenant can fill, each its own: a leak has a name."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from api.calls import ON_EVENT
from web.test_signing_in import token_of


@dataclass
class Canaries:
    """`canaries("label")` is the string of that field, the same each time."""

    known: dict[str, str] = field(default_factory=dict)

    def __call__(self, name: str) -> str:
        # In hexadecimal all through: no escaping, lower-casing or wrapping hides it.
        return self.known.setdefault(name, f"ca{secrets.token_hex(9)}")

    def found_in(self, text: str) -> list[str]:
        lower = text.lower()
        return [name for name, value in self.known.items() if value in lower]

    def without(self, *sent: str) -> "Canaries":
        """All but those that the caller itself has sent: an answer may repeat them."""
        return Canaries({name: each for name, each in self.known.items() if name not in sent})


def calls_of(address: str, token: str, tenant: str | None = None) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {token}"}
    if tenant is not None:
        headers["X-Fairlane-Tenant"] = tenant
    return httpx2.Client(base_url=f"{address}/api/v1", headers=headers, timeout=30)


@contextmanager
def signed_in(address: str, token: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=address, timeout=30) as http:
        answer = http.post("/login", data={"token": token})
        assert answer.status_code == 303, answer.text
        yield http


def good(answer: httpx2.Response) -> Any:
    assert answer.status_code < 300, f"{answer.request.url}: {answer.text}"
    return answer.json()


def plant(address: str, admin: str, worker: str, canary: Canaries) -> dict[str, str]:
    """Fill every field of acme's by the calls that take them; the ids of what there is then."""
    ids: dict[str, str] = {}
    with calls_of(address, admin) as http, calls_of(address, worker) as works:
        headers = {"X-Correlation-Id": canary("correlation header")}
        headers["tracestate"] = f"acme={canary('tracestate')}"
        headers["traceparent"] = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
        task = {
            "definition_key": "a.task",
            "payload": {canary("payload key"): {"deep": [canary("payload value")]}},
        }
        keys = {"concurrency_key": canary("concurrency key")}
        keys["dedupe_key"] = canary("dedupe key")
        ids["queued"] = good(http.post("/jobs", json={**task, **keys}, headers=headers))["id"]
        named = {"correlation_id": canary("correlation id")}
        for outcome in ("done", "dead", "running"):
            ids[outcome] = worked(http, works, {**task, **named}, outcome, canary)
        note = {"notes": canary("note")}
        good(http.post(f"/dead-letters/{ids['dead']}/note", json=note))
        canceled = good(http.post("/jobs", json=task))["id"]
        good(http.post(f"/jobs/{canceled}/cancel", json={"reason": canary("cancel reason")}))
        bulk = {"action": "cancel", "filter": {"q": canary("bulk filter")}}
        bulk["reason"] = canary("bulk reason")
        ids["operation"] = good(http.post("/jobs/bulk", json=bulk))["operation"]["id"]
        event = {"name": canary("event name"), "data": {"text": canary("event data")}}
        event["id"] = ids["event"] = canary("event id")
        good(http.post("/events", json=event))
        trigger = {**ON_EVENT, "label": canary("trigger label"), "event_name": event["name"]}
        trigger["payload_template"] = {"text": canary("trigger template")}
        trigger["filter"] = {"text": canary("trigger filter")}
        ids["trigger"] = good(http.post("/triggers", json=trigger))["id"]
        token = {"role": "viewer", "name": canary("token name")}
        ids["token"] = good(http.post("/tokens", json=token))["id"]
    with signed_in(address, admin) as browser:
        view = {"_token": token_of(browser.get("/account").text), "name": canary("view name")}
        view["query"] = f"q={canary('view query')}"
        assert browser.post("/t/acme/views", data=view).status_code == 303
    return ids


def worked(
    http: httpx2.Client, works: httpx2.Client, task: dict[str, Any], outcome: str, canary: Canaries
) -> str:
    """A job that a worker has talked about in every way there is."""
    id_ = str(good(http.post("/jobs", json={**task, "max_attempts": 1}))["id"])
    claim = {"worker": "w1", "queues": {"default": 50}}
    held = {each["id"]: each for each in good(works.post("/worker/jobs/claim", json=claim))["jobs"]}
    fence = {"worker": "w1", "attempt": held[id_]["attempt"]}
    said = {
        "phase": canary("phase"),
        "progress": {"message": canary("progress")},
        "lines": [
            {"level": "info", "message": canary("line"), "fields": {"f": canary("line field")}}
        ],
        "items": [
            {"name": canary("item"), "state": "failed", "error": canary("item error")},
            {"name": "fine", "state": "completed"},
        ],
    }
    call = f"/worker/jobs/{id_}"
    good(works.post(f"{call}/progress", json={**fence, **said}))
    if outcome == "done":
        told = {**fence, "result": {"text": canary("result")}, "errors": [canary("errors")]}
        good(works.post(f"{call}/complete", json=told))
    elif outcome == "dead":
        error = {"message": canary("error"), "type": canary("error type")}
        good(works.post(f"{call}/fail", json={**fence, "error": error, "final": False}))
    return id_
