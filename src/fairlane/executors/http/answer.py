"""What an answer means: a result, another attempt, or the end."""

import asyncio
import re
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import msgspec

from fairlane.core import json
from fairlane.executors.base import storable

LONGEST_WAIT = 86_400  # seconds that a Retry-After may ask for
EXCERPT = 500  # characters of an answer that an error tells
TAIL = 65_536  # characters of a text that become a result
EXCERPT_SECONDS = 5
_AGAIN = frozenset({408, 425, 429})


class AnswerInvalid(Exception):
    """An answer that cannot be taken as a result."""


def worth_another(status: int) -> bool:
    """Whether the same call may go better later."""
    return status in _AGAIN or status >= 500


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that the receiver asks to wait: a number, or a date by its own clock."""
    text = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,12}", text):
        return float(min(int(text), LONGEST_WAIT))
    if (then := _date(text)) is None:
        return None
    since = _date(headers.get("Date", "")) or now
    return min(max((then - since).total_seconds(), 0.0), LONGEST_WAIT)


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


async def result(response: aiohttp.ClientResponse, limit: int) -> Any:
    """The answer as the job's result: its JSON, or a text with its status; nothing is null."""
    body = await _read(response, limit)
    if not body.strip():
        return None
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or kind.endswith("+json")
    if is_json or not kind:
        try:
            return json.loads(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
            if is_json:
                raise AnswerInvalid(f"with {kind} that is not JSON") from None
    text = storable(body.decode(_charset(response), errors="replace"))
    return {
        "status": response.status,
        "content_type": kind or None,
        "body": text[-TAIL:],
        "bytes": len(body),
    }


async def excerpt(response: aiohttp.ClientResponse, scrub: Callable[[str], str]) -> str:
    """The first words of an answer, for a person; whatever is wrong with them is no matter."""
    raw = b""
    try:
        async with asyncio.timeout(EXCERPT_SECONDS):
            async for chunk in response.content.iter_any():
                raw += chunk
                if len(raw) >= 4 * EXCERPT:
                    break
    except (aiohttp.ClientError, TimeoutError):
        pass
    try:
        raw = inflated(raw, response.headers.get("Content-Encoding", ""), 4 * EXCERPT, whole=False)
    except AnswerInvalid:
        return ""
    # Scrubbed before it is cut: half of a secret would not be known again.
    text = scrub(raw.decode(_charset(response), errors="replace"))
    return storable(" ".join(re.sub(r"[\x00-\x1f\x7f]", " ", text).split())[:EXCERPT])


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    too_large = AnswerInvalid(f"with more than {limit} bytes, its max_response_bytes")
    if (response.content_length or 0) > limit:
        raise too_large
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise too_large
        chunks.append(chunk)
    body = inflated(b"".join(chunks), response.headers.get("Content-Encoding", ""), limit)
    if len(body) > limit:
        raise too_large
    return body


def inflated(body: bytes, encoding: str, limit: int, *, whole: bool = True) -> bytes:
    """Of at most one byte more than the limit, however little it was on its way. Calls ask for no
    compression; some servers compress all the same."""
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        case "deflate":
            inflate = zlib.decompressobj()
        case other:
            raise AnswerInvalid(f"in the encoding {other[:40]!r}, which it was not asked for")
    try:
        unpacked = inflate.decompress(body, limit + 1)
    except zlib.error:
        raise AnswerInvalid(f"with {encoding} that cannot be unpacked") from None
    if whole and len(unpacked) <= limit and not inflate.eof:
        raise AnswerInvalid(f"with {encoding} that ends early")
    return unpacked


def _charset(response: aiohttp.ClientResponse) -> str:
    try:
        "".encode(response.charset or "utf-8")
        return response.charset or "utf-8"
    except LookupError:
        return "utf-8"
