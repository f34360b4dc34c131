"""The OpenAPI document: complete, with roles, errors and examples, and a page that shows it."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from fairlane.api.permits import Permit

REF = "#/components/schemas/{model}"

# Bodies that are read by hand, and so unknown to FastAPI.
_described: set[type[BaseModel]] = set()

ERRORS = {
    "400": "The body is not JSON.",
    "401": "No token, or a bad one.",
    "403": "The role is too low.",
    "404": "Not there, or another tenant's.",
    "409": "It is in another state.",
    "413": "It is too large.",
    "415": "The body is not JSON.",
    "422": "The request is invalid; `errors` has a pointer each.",
    "429": "Over a limit; `Retry-After` says when to come again.",
    "503": "The database does not answer.",
    "504": "It took too long.",
}


def describes(model: type[BaseModel]) -> dict[str, Any]:
    """What `openapi_extra` says of a body that the call reads itself."""
    _described.add(model)
    schema = {"$ref": REF.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def rule(permit: Permit) -> dict[str, Any]:
    """What an operation says of who may call it; the tests of access are made from this."""
    return {
        "x-fairlane-role": permit.permission.value,
        "x-fairlane-tenant": permit.of_tenant,
        **({"x-fairlane-also": [role.value for role in permit.also]} if permit.also else {}),
        "security": [{"bearer": []}],
    }


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    found = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
        tags=TAGS,
        servers=app.servers or None,
    )
    parts = found.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    _, described = models_json_schema(
        [(model, "validation") for model in sorted(_described, key=str)], ref_template=REF
    )
    for name, schema in described.get("$defs", {}).items():
        schemas.setdefault(name, schema)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    parts["securitySchemes"] = {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of `fairlane tokens create`, or of your identity provider.",
        }
    }
    parts["responses"] = {f"Problem{status}": _problem(said) for status, said in ERRORS.items()}
    parts["parameters"] = PARAMETERS
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            _complete(operation, path, method)
    _link(found["paths"])
    return found


def _link(paths: dict[str, Any]) -> None:
    """What can be asked of the job that a call answers with."""
    links = {
        operation["operationId"]: {
            "operationId": operation["operationId"],
            "parameters": {"path.job_id": "$response.body#/id"},
        }
        for path, operations in paths.items()
        for operation in operations.values()
        if path.startswith("/api/v1/jobs/{job_id}") and not path.endswith("/events")
    }
    for path in ANSWER_WITH_A_JOB:
        for status, answer in paths[path]["post"]["responses"].items():
            if status in ("200", "202"):
                answer["links"] = links


ANSWER_WITH_A_JOB = ("/api/v1/jobs", "/api/v1/jobs/{job_id}/retry", "/api/v1/jobs/{job_id}/cancel")


def _complete(operation: dict[str, Any], path: str, method: str) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    if "x-fairlane-role" not in operation:
        return
    statuses = {"401", "403", "422", "429", "503", "504"}
    if "requestBody" in operation:
        statuses |= {"400", "413", "415"}
    if "{" in path or operation.get("x-fairlane-tenant") or "/admin/" in path:
        statuses.add("404")
    if method != "get" or path.endswith("/result"):
        statuses.add("409")
    for status in sorted(statuses):
        responses[status] = {"$ref": f"#/components/responses/Problem{status}"}
    for answer in responses.values():
        if "$ref" not in answer:
            answer["headers"] = {"X-Correlation-Id": {"schema": {"type": "string"}}}
    wanted = ["CorrelationId"]
    if operation.get("x-fairlane-tenant"):
        wanted += ["ActingFor", "ActingForTenant"]
    operation["parameters"] = [
        *operation.get("parameters", []),
        *({"$ref": f"#/components/parameters/{name}"} for name in wanted),
    ]


def _problem(said: str) -> dict[str, Any]:
    schema = {"$ref": REF.format(model="ProblemOut")}
    return {"description": said, "content": {"application/problem+json": {"schema": schema}}}


PARAMETERS = {
    "CorrelationId": {
        "name": "X-Correlation-Id",
        "in": "header",
        "required": False,
        "description": "Kept on the job, echoed, and passed on; made if not given.",
        "schema": {"type": "string", "maxLength": 200},
    },
    "ActingFor": {
        "name": "X-Fairlane-Tenant",
        "in": "header",
        "required": False,
        "description": "The tenant that an operator acts for.",
        "schema": {"type": "string", "maxLength": 63},
    },
    "ActingForTenant": {
        "name": "tenant",
        "in": "query",
        "required": False,
        "description": "The same as X-Fairlane-Tenant.",
        "schema": {"type": "string", "maxLength": 63},
    },
}

TAGS = [
    {"name": "jobs", "description": "Enqueue jobs, look at them, cancel them, run them again."},
    {"name": "dead letters", "description": "Jobs that wait for a person."},
    {"name": "triggers", "description": "Rules that make jobs, on events and by the clock."},
    {"name": "events", "description": "Facts that an application tells."},
    {"name": "streams", "description": "Server-sent events."},
    {"name": "definitions", "description": "What may run."},
    {"name": "access", "description": "Who calls, and tokens."},
    {"name": "usage", "description": "What was used, by day."},
    {"name": "admin", "description": "For operators, across tenants."},
    {"name": "worker", "description": "For workers in any language."},
    {"name": "health", "description": "For load balancers."},
]
