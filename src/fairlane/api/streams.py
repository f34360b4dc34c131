"""Server-sent events: /jobs/{id}/events for one job, /stream for all of a tenant's."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fairlane.access.refusals import AccessError, Busy
from fairlane.api.following import Stream
from fairlane.api.here import Here
from fairlane.api.ids import JobId
from fairlane.api.job_service import the_job
from fairlane.api.permits import MayRead
from fairlane.api.route import PREFIX, Route, bearer
from fairlane.api.service import Service
from fairlane.core.connect import UNREACHABLE
from fairlane.errors import DatabaseUnavailable

router = APIRouter(prefix=PREFIX, tags=["streams"], route_class=Route)

HEARTBEAT = 15.0
RECHECK = 10.0  # seconds until a token is looked at again, where no word of its end came
UNKNOWN = 60.0  # and that a stream stands open while nobody can

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`state` (the job, without payload and errors), `phase`, `progress`, `log`, "
        "`summary`, `operation`, `gap`, `end`.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'event: phase\ndata: {"id": "0197b0a4-...", "phase": "upload"}\n\n',
            }
        },
    }
}
LastEventId = Annotated[
    str | None,
    Header(description="The `id` of the last log line seen.", max_length=20),
]


@router.get(
    "/jobs/{job_id}/events",
    response_class=StreamingResponse,
    responses=EVENTS,
    summary="Follow a job",
)
async def follow_job(
    request: Request, job_id: JobId, who: MayRead, here: Here, last_event_id: LastEventId = None
) -> Response:
    """Its state first, then what changes, until it has ended."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        await the_job(connection, who, job_id)
    known = (last_event_id or "").isascii() and (last_event_id or "").isdigit()
    after = int(last_event_id or 0) if known and len(last_event_id or "") < 19 else 0
    return streamed(request, here, here.hub.open(who, job_id, after))


@router.get(
    "/stream", response_class=StreamingResponse, responses=EVENTS, summary="Follow all jobs"
)
async def follow_all(request: Request, who: MayRead, here: Here) -> Response:
    """What changes from now on. What happens to one job within a second is told once."""
    return streamed(request, here, here.hub.open(who))


def streamed(request: Request, here: Service, stream: Stream) -> Response:
    token = bearer(request)

    async def is_good() -> bool:
        return await _is_good(here, stream, token)

    return Events(here, stream, is_good, here.hub.leave)


class Events(Response):
    """What a stream says, until the stream, the token, the server or the reader ends."""

    media_type = "text/event-stream"

    def __init__(
        self,
        here: Service,
        stream: Stream,
        is_good: Callable[[], Awaitable[bool]],
        leave: Callable[[Stream], None],
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._here = here
        self._stream = stream
        self._is_good = is_good
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Nothing of ours waits beside the sending: what is left waiting when a reader goes is work
        # for whoever collects garbage, and is told as an error.
        leaving = asyncio.ensure_future(self._until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._say(send, b": fairlane\n\n")
            await self._follow(send, leaving)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._leave(self._stream)
            leaving.cancel()
            await asyncio.wait([leaving])

    async def _follow(self, send: Send, leaving: "asyncio.Future[None]") -> None:
        stream, stopping = self._stream, self._here.stopping
        asked_at = known_at = spoke = time.monotonic()
        while True:
            if said := stream.take():
                await self._say(send, said)
                spoke = time.monotonic()
            if stream.is_over or stopping.is_set() or leaving.done():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await stream.news.wait()
            now = time.monotonic()
            if now - asked_at >= RECHECK:
                asked_at = now
                is_good = await self._standing()
                if is_good is False:
                    stream.end("the token is no longer good")
                elif is_good:
                    known_at = now
                elif now - known_at >= UNKNOWN:
                    stream.end("nobody can say whether the token is still good; come again")
            if now - spoke >= HEARTBEAT:
                spoke = now
                await self._say(send, b": still here\n\n")

    async def _standing(self) -> bool | None:
        """None where nobody can say just now. A busy minute is no reason to cut a reader off."""
        try:
            return await self._is_good()
        except (Busy, DatabaseUnavailable, *UNREACHABLE):
            return None

    async def _say(self, send: Send, body: bytes) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": True})

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.news.set()


async def _is_good(here: Service, stream: Stream, token: str | None) -> bool:
    ends = stream.who.expires_at
    if ends is not None and ends <= datetime.now(UTC):
        return False
    try:
        who = await here.door.admit(token)
    except Busy:
        raise
    except AccessError:
        return False
    return who.role is stream.who.role and who.subject == stream.who.subject
