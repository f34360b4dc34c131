"""Connections, before anybody has shown a token: how many, how much they may send, and how slowly.

The parser sets no bounds of its own: a header of 90 MB is put together piece by piece, and the
whole server waits for it. Here a connection is closed as soon as it is over one of these.
"""

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

HEAD = 64 * 1024  # bytes of a request's first line and headers
HEAD_SECONDS = 10.0  # until they are here
SLOW_SECONDS = 20.0  # between two looks at whether a body comes, and an answer is taken
SLOWEST = 1024  # bytes a second of a body


class Doorway(HttpToolsProtocol):
    """One connection."""

    most = 4000  # connections at once

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._refused = False
        self._asked = False  # a request is being read
        self._in_head = True
        self._received = 0  # bytes of this request
        self._fields = 0  # of them in its headers
        self._body = 0
        self._seen = 0  # bytes, when it was last looked at
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(503, "as many connections stand open as this server allows; come again")
        else:
            self._reading = self.loop.call_later(HEAD_SECONDS, self._look_at_reading)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    # What comes in ---------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._received += len(data)
        super().data_received(data)
        # Whatever is not the body is headers, trailers, or the lengths of chunks: small.
        if self._received > HEAD + 8 * self._body:
            self._too_large()
        if self.transport.is_closing() or (not self._asked and self._is_answering):
            self._stop_reading()
        elif self._reading is None and (self._asked or self.timeout_keep_alive_task is None):
            self._seen = self._received
            wait = HEAD_SECONDS if self._in_head else SLOW_SECONDS
            self._reading = self.loop.call_later(wait, self._look_at_reading)

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is not None and not cycle.response_complete

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _look_at_reading(self) -> None:
        """The head must be here by now, and the body must be coming."""
        self._reading = None
        came = self._received - self._seen
        if not self._asked and self._is_answering:
            return
        if self._in_head or (not self.flow.read_paused and came < SLOWEST * SLOW_SECONDS):
            self._refuse(408, "the request did not come in time; send it faster")
        else:
            self._seen = self._received
            self._reading = self.loop.call_later(SLOW_SECONDS, self._look_at_reading)

    def on_message_begin(self) -> None:
        if not self._refused:
            self._asked = self._in_head = True
            self._received = self._fields = self._body = 0
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._refused:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += len(name) + len(value) + 4
        if self._fields > HEAD:
            self._too_large()
        if not self._refused:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._fields + len(self.url) > HEAD:
            self._too_large()
        if not self._refused:
            self._in_head = False
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            self._body += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            self._asked = False
            self._in_head = True
            self._received = self._seen = self._body = 0
            super().on_message_complete()

    def _too_large(self) -> None:
        self._refuse(431, f"the headers are larger than {HEAD} bytes")

    def _refuse(self, status: int, detail: str) -> None:
        """Answer, where nothing else is being answered, and close."""
        if self._refused:
            return
        self._refused = True
        if self._is_answering:
            # A call waits for the rest; it learns that its caller is gone.
            self.transport.abort()
            return
        title = HTTPStatus(status).phrase
        problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
        body = json.dumps(problem).encode()
        head = (
            "content-type: application/problem+json\r\nconnection: close\r\n"
            f"content-length: {len(body)}\r\nretry-after: 5\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()

    # What goes out ---------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _watch_writing(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(SLOW_SECONDS, self._look_at_writing, left)

    def _look_at_writing(self, before: int) -> None:
        """A reader that takes nothing keeps what waits for it in memory, and its call alive."""
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch_writing()


def doorway(most: int) -> type[Doorway]:
    """For so many connections at once."""
    return type("Doorway", (Doorway,), {"most": most})
