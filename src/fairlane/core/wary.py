"""A connection that trusts neither the network nor a commit that was not waited for.

A peer that is gone without a word is noticed in about ten seconds, by both sides. A commit whose
wait for the standby somebody broke off is no success: PostgreSQL says so by a warning alone.
"""

import contextlib
import socket
from typing import Any

import asyncpg

SECONDS = 10  # that sent data may stay unacknowledged, and a transaction idle
KEEPALIVES = {"idle": 5, "interval": 2, "count": 3}  # seconds, seconds, times

# The same, as the server is to see to its end of the connection. Unix sockets take no notice.
SETTINGS = {
    "tcp_user_timeout": str(SECONDS * 1000),
    **{f"tcp_keepalives_{name}": str(value) for name, value in KEEPALIVES.items()},
}
OF_OUR_OWN = {"idle_in_transaction_session_timeout": str(SECONDS * 1000)}

# A commit waits for the standby by what it has written: this waits for all that came before it.
CONFIRM = "select pg_logical_emit_message(true, 'fairlane', '')"


class Unreplicated(ConnectionError):
    """The commit is on this server and on no standby: it may be gone after a failover."""


class Wary(asyncpg.Connection):
    """asyncpg's own, which hears of what others do not say."""

    def __init__(self, protocol: Any, transport: Any, *args: Any, **options: Any) -> None:
        super().__init__(protocol, transport, *args, **options)
        self.is_unsure = False  # whether a commit of this connection has reached the standby
        watch(transport.get_extra_info("socket"))

    async def confirm(self) -> None:
        """After a commit: wait until the standby has it, where somebody broke off the wait."""
        if self.is_unsure and not self.is_in_transaction():
            self.is_unsure = False
            await self.execute(CONFIRM)
            if self.is_unsure:
                self.is_unsure = False  # told: what comes next on this connection is another matter
                raise Unreplicated("the wait for the standby was broken off; it may have been done")

    def _process_log_message(self, fields: dict[str, str], last_query: str) -> None:
        # By where in the server it comes from: the message is in any language.
        if fields.get("R") == "SyncRepWaitForLSN":
            self.is_unsure = True
        super()._process_log_message(fields, last_query)  # type: ignore[misc]


def watch(found: Any) -> None:
    """Have the kernel notice a peer that does not answer."""
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    wanted = {
        "TCP_KEEPIDLE": KEEPALIVES["idle"],
        "TCP_KEEPINTVL": KEEPALIVES["interval"],
        "TCP_KEEPCNT": KEEPALIVES["count"],
        "TCP_USER_TIMEOUT": SECONDS * 1000,  # Linux alone has it
    }
    with contextlib.suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in wanted.items():
            if hasattr(socket, name):
                found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
