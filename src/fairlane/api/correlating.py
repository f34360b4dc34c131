"""X-Correlation-Id: taken or made before anything else, echoed, and in every log line."""

import re
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.api.request_lines import tell
from fairlane.correlation import CURRENT
from fairlane.ids import uuid7

CORRELATION = "fairlane.correlation_id"
HEADER = "X-Correlation-Id"
_USABLE = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,198}[\x21-\x7e])?")


def correlated(scope: Any, headers: Headers | None = None) -> str:
    """What the caller calls this request, if that can stand in a header; else a new name.

    Nothing takes it back: a call is a task of its own, and what the server says when the call has
    failed is about it, too.
    """
    found: str | None = scope.get(CORRELATION)
    if found is None:
        given = (headers or Headers(scope=scope)).get(HEADER)
        usable = given is not None and _USABLE.fullmatch(given)
        found = given if usable and given is not None else uuid7().hex
        scope[CORRELATION] = found
        CURRENT.set(found)
    return found


class Correlated:
    """Answers whatever is asked with its correlation id, and says in the log that it did."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        correlation = correlated(scope)
        started = time.perf_counter()
        status: int | None = None

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).setdefault(HEADER, correlation)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            tell(scope, status, started)
