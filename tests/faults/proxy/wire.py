"""PostgreSQL's protocol, as far as a proxy must read it."""

import asyncio
import re
import struct

STARTUP, CANCEL, TLS, GSS = 196608, 80877102, 80877103, 80877104

# The head of a statement that writes, and what only reads in spite of being a function of ours.
WRITES = re.compile(
    r"(^|;|\bas\s*(not\s+)?(materialized\s*)?\()\s*"
    r"(insert|update|delete|merge|copy|truncate|create|alter|drop|grant|call|do)\b",
    re.IGNORECASE,
)
OURS = re.compile(r"\bfairlane\.(\w+)\s*\(", re.IGNORECASE)
READS = frozenset({"clock", "explain", "newest_jobs", "due_operation", "id_of"})


def is_write(text: str) -> bool:
    return bool(WRITES.search(text)) or any(
        name.lower() not in READS for name in OURS.findall(text)
    )


async def message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Its kind, and all of it."""
    head = await reader.readexactly(5)
    body = await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
    return head[:1], head + body


def texts(body: bytes) -> list[str]:
    """What stands at its head, each ended by a zero."""
    return [each.decode(errors="replace") for each in body.split(b"\0", 2)]
