"""Server-sent events: /jobs/{id}/events for one job, /stream for all of a tenant's."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response, StreamingResponse

from fairlane.access.refusals import AccessError
from fairlane.api.here import Here
from fairlane.api.hub import Stream
from fairlane.api.ids import JobId
from fairlane.api.jobs import the_job
from fairlane.api.permits import MayRead
from fairlane.api.route import PREFIX, Route, bearer
from fairlane.api.service import Service

router = APIRouter(prefix=PREFIX, tags=["streams"], route_class=Route)

HEARTBEAT = 15.0
RECHECK = 10.0  # seconds until a token is looked at again, where no word of its end came

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`state` (the job), `phase`, `progress`, `log`, `summary`, `gap`, `end`.",
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
    events = _events(here, stream, bearer(request))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(here: Service, stream: Stream, token: str | None) -> AsyncIterator[bytes]:
    """Until the stream, the token, the server or the reader ends."""
    stopping = asyncio.ensure_future(here.stopping.wait())
    looked_at = spoke = time.monotonic()
    try:
        yield b": fairlane\n\n"
        while True:
            while stream.events:
                yield stream.events.popleft()
                spoke = time.monotonic()
            if stream.is_over or stopping.done():
                return
            stream.news.clear()
            news = asyncio.ensure_future(stream.news.wait())
            await asyncio.wait([news, stopping], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            now = time.monotonic()
            if now - looked_at >= RECHECK:
                looked_at = now
                if not await _is_good(here, stream, token):
                    stream.end("the token is no longer good")
            if now - spoke >= HEARTBEAT:
                spoke = now
                yield b": still here\n\n"
    finally:
        stopping.cancel()
        here.hub.leave(stream)


async def _is_good(here: Service, stream: Stream, token: str | None) -> bool:
    ends = stream.who.expires_at
    if ends is not None and ends <= datetime.now(UTC):
        return False
    try:
        who = await here.door.admit(token)
    except AccessError:
        return False
    return who.role is stream.who.role and who.subject == stream.who.subject
