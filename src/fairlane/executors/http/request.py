"""What is sent: the definition's templates filled in, and what every call carries."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from fairlane.core import json
from fairlane.executors.http import signing
from fairlane.executors.http.calls import HttpCalls
from fairlane.executors.http.settings import HttpSettings
from fairlane.executors.values import values_of
from fairlane.observe import trace
from fairlane.version import VERSION
from fairlane.worker.attempt import Attempt

_AGENT = f"fairlane/{VERSION}"
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


class Request(NamedTuple):
    url: str
    headers: dict[str, str]
    body: bytes | None


def request_for(settings: HttpSettings, calls: HttpCalls, attempt: Attempt) -> Request:
    values = values_of(attempt)
    body = _body(settings, values)
    headers = {"Accept": "application/json", "User-Agent": _AGENT}
    if body is not None:
        headers["Content-Type"] = "application/json"
    usual = {name.lower(): name for name in headers}
    for header in settings.headers:
        headers.pop(usual.get(header.name.lower(), ""), None)
        headers[header.name] = header.render(values, calls.secrets)
    keys = calls.signing_keys(settings.sign_with, settings.url.receiver)
    headers |= _own_headers(attempt, body or b"", keys)
    if not any(header.name.lower() == trace.PARENT for header in settings.headers):
        headers |= trace.headers(attempt.passed_on)
    return Request(settings.url.render(values), headers, body)


def _body(settings: HttpSettings, values: Mapping[str, Any]) -> bytes | None:
    if settings.sends_payload:
        return json.dumps(values["payload"]).encode()
    if settings.body is None:
        return None
    return json.dumps(settings.body.render(values)).encode()


def _own_headers(attempt: Attempt, body: bytes, keys: list[bytes]) -> dict[str, str]:
    job = str(attempt.job_id)
    told = {
        "X-Correlation-Id": attempt.correlation_id or job,
        # The job's, so that every attempt of it is known again as the same request.
        "Idempotency-Key": job,
        "Fairlane-Job": job,
        "Fairlane-Tenant": attempt.tenant,
        "Fairlane-Definition": attempt.key,
        "Fairlane-Version": attempt.version,
        "Fairlane-Attempt": str(attempt.number),
        "Fairlane-Fence": str(attempt.attempt),
    }
    signed = signing.headers(job, body, datetime.now(UTC), keys) if keys else {}
    return {
        # Not compressed: what an answer may unpack to is then known by its length.
        "Accept-Encoding": "identity",
        **{name: quote(value, safe=_PRINTABLE) for name, value in told.items()},
        **signed,
    }
