"""The OpenAPI document is what the server does: generated calls, and none breaks it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.calls import document
from support.started import Running, running

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = int(os.environ.get("FAIRLANE_FUZZ_EXAMPLES", "6"))


@pytest.fixture(scope="module")
def live(cluster: Any, template: str, tmp_path_factory: Any) -> Iterator[tuple[str, str]]:
    """A real server, and the token of an operator who acts for a tenant."""
    folder: Path = tmp_path_factory.mktemp("served")
    with cluster.fresh(template) as database:
        environment = {"FAIRLANE_DATABASE_URL": database, "FAIRLANE_API_RATE": "0"}
        with running(folder, "server", "--port", "0", **environment) as server:
            token = server.until(r"operator token, shown this once: (fl_\S+)")
            address = server.until(r"listening on (http://\S+)")
            server.ready(address)
            prepare(address, token)
            yield address, token
            assert_no_tracebacks(server)


def prepare(address: str, token: str) -> None:
    import httpx2

    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{address}/api/v1", headers=headers) as http:
        http.post("/admin/tenants", json={"slug": "acme", "plan": "pro"}).raise_for_status()
        http.post("/admin/jobs/definitions", json={"key": "a.task"}).raise_for_status()


def assert_no_tracebacks(server: Running) -> None:
    told = [line for line in server.said if "Traceback" in line or "unforeseen" in line]
    assert not told, "\n".join(server.said[-40:])


def without_streams() -> dict[str, Any]:
    """A stream has no end to wait for."""
    found = document()
    paths = found["paths"]
    for path in [path for path in paths if path.endswith(("/events", "/stream"))]:
        del paths[path]
    return found


def hurry(case: Any) -> None:
    """A claim waits only as long as it is told to."""
    if isinstance(case.body, dict) and "wait_seconds" in case.body:
        case.body["wait_seconds"] = 0


schema = schemathesis.openapi.from_dict(without_streams())


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_no_call_breaks_the_server(case: Any, live: tuple[str, str]) -> None:
    address, token = live
    headers = {"Authorization": f"Bearer {token}"}
    if case.operation.definition.raw.get("x-fairlane-tenant"):
        headers["X-Fairlane-Tenant"] = "acme"
    hurry(case)
    case.call_and_validate(
        base_url=address,
        headers=headers,
        checks=CHECKS,
    )


def test_one_call_leads_to_the_next(live: tuple[str, str]) -> None:
    """By the links of the document: a job that was made is looked at, canceled, run again."""
    address, token = live
    linked = schemathesis.openapi.from_dict(without_streams())
    linked.config.update(base_url=address)
    machine: Any = linked.as_state_machine()

    class Workflow(machine):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            headers = {"Authorization": f"Bearer {token}"}
            if case.operation.definition.raw.get("x-fairlane-tenant"):
                headers["X-Fairlane-Tenant"] = "acme"
            return {"headers": headers}

        def before_call(self, case: Any) -> None:
            hurry(case)

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            case.validate_response(response, checks=CHECKS)

    Workflow.run(
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=8,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
    )
