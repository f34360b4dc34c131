"""Listening on channels. What is heard is a hint: a connection may be lost without a word."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from fairlane.core.connect import connect

ASK_EVERY = 30.0  # seconds
ANSWER = 10.0

Heard = Callable[[str], None]


async def listen(
    url: str, channels: Mapping[str, Heard], *, name: str, ready: Callable[[], None]
) -> None:
    """Call what belongs to a channel with each notification, until the connection is gone. `ready`
    is called once nothing is missed any more."""
    connection = await connect(url, name=name)
    gone = asyncio.Event()
    connection.add_termination_listener(lambda _: gone.set())
    try:
        for channel, heard in channels.items():
            await connection.add_listener(channel, _passing_on(heard))
        ready()
        while not gone.is_set():
            try:
                async with asyncio.timeout(ASK_EVERY):
                    await gone.wait()
            except TimeoutError:
                # A half-open connection hears nothing and says nothing: ask.
                async with asyncio.timeout(ANSWER):
                    await connection.execute("select 1")
    finally:
        connection.terminate()


def _passing_on(heard: Heard) -> Callable[..., None]:
    def pass_on(connection: Any, pid: int, channel: str, payload: object) -> None:
        heard(str(payload))

    return pass_on
