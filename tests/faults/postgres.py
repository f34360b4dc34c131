"""The PostgreSQL of a run, restarted while everything else goes on."""

import asyncio
import signal
from pathlib import Path

from support.postgres import Server

SETTINGS = {
    "wal_level": "logical",
    "max_wal_senders": "4",
    "max_replication_slots": "4",
    "superuser_reserved_connections": "12",
    "unix_socket_permissions": "0777",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
    # What a half-open connection may cost; see docs/faults.md.
    "tcp_user_timeout": "10000",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}


def made(home: Path) -> Server:
    """With fsync on: what is acknowledged must be there after a crash."""
    return Server.made(home, SETTINGS, tcp=True)


async def ready(server: Server, within: float = 60.0) -> None:
    async with asyncio.timeout(within):
        while not await asyncio.to_thread(server.answers):
            if not server.runs:
                server.launch()  # it gave up, perhaps for memory of the one before it
            await asyncio.sleep(0.02)


async def restart(server: Server, how: signal.Signals) -> None:
    server.signal(how)
    while server.runs:
        await asyncio.sleep(0.01)
    server.launch()
    await ready(server)
