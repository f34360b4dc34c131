"""When `fairlane up` may say where to look: not before something answers there."""

import asyncio
import socket
from contextlib import suppress

from fairlane.core import connect

LONGEST = 60.0  # then it is said all the same: the log tells what is in the way
PAUSE = 0.1

STARTED = """
select exists (select from fairlane.worker where state = 'live' and started_at >= $1)
"""


async def ready(url: str, listening: socket.socket) -> None:
    """The server answers, and a worker that began after now has said what it can run."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST):
            await asyncio.gather(_answers(listening), _works(url))


async def _answers(listening: socket.socket) -> None:
    # The socket is ours and takes connections from the start; a call waits in line until the
    # server takes it.
    host, port = listening.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(local, port)
            try:
                writer.write(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
                if await reader.readline():
                    return
            finally:
                writer.close()
        await asyncio.sleep(PAUSE)


async def _works(url: str) -> None:
    while True:
        with suppress(Exception):  # the children say what is wrong with the database
            async with connect.connected(url, name="fairlane up") as conn:
                # Of this start, and not one that another has just left behind.
                since = await conn.fetchval("select fairlane.clock() - interval '10 seconds'")
                while not await conn.fetchval(STARTED, since):  # noqa: ASYNC110 - not ours to set
                    await asyncio.sleep(PAUSE)
                return
        await asyncio.sleep(PAUSE)
