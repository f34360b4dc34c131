"""What somebody copies into a shell or a program to do the same as a page."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from fairlane.core import json as ours
from fairlane.web.visit import Visit


def curl(visit: Visit, path: str, body: Mapping[str, Any]) -> str:
    """A call of the API; the token is the reader's to give."""
    text = json.dumps(json.loads(ours.dumps(body)), ensure_ascii=False)
    address = f"{visit.front.scheme}://{visit.front.host}/api/v1{path}"
    return (
        f"curl -X POST {shlex.quote(address)} -H 'Authorization: Bearer '\"$FAIRLANE_TOKEN\""
        f" -H 'Content-Type: application/json' -d {shlex.quote(text)}"
    )


def enqueue_by_curl(visit: Visit, job: Mapping[str, Any]) -> str:
    body = {"definition_key": job["definition_key"], "payload": job["payload"]}
    return curl(visit, "/jobs", body)


def enqueue_by_python(job: Mapping[str, Any]) -> str:
    payload = json.loads(ours.dumps(job["payload"]))
    said = f"{job['definition_key']!r}, {payload!r}, tenant={job['tenant']!r}"
    return f"from fairlane import Fairlane\n\njob = Fairlane().enqueue_sync({said})\n"


def emit_by_curl(visit: Visit) -> str:
    body = {"name": "provider.folder.updated", "data": {"provider_id": "p-1", "size": 12}}
    return curl(visit, "/events", body)
