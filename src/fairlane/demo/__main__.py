"""`python -m fairlane.demo`: the stream, until it is told to stop."""

import asyncio
import signal
from contextlib import suppress

from fairlane import config
from fairlane.database import database
from fairlane.demo.stream import produce
from fairlane.observe.logs import log_to_stderr


async def _until_stopped(url: str) -> None:
    task = asyncio.create_task(produce(url))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


def main() -> None:
    settings = config.load()
    log_to_stderr(settings)
    with database(settings, start=False) as url:
        asyncio.run(_until_stopped(url))


if __name__ == "__main__":
    main()
