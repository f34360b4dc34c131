"""Signs calls as Standard Webhooks do, so that receivers verify them with a library they find.

What is signed is `{id}.{timestamp}.{body}`; the id is the job's, the same over all its attempts.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

from fairlane.secrets import SecretMissing

PREFIX = "whsec_"
_PURPOSE = b"fairlane: calls to "


def headers(call_id: str, body: bytes, now: datetime, keys: Sequence[bytes]) -> dict[str, str]:
    """What a receiver verifies; one signature for each key, so that keys can be changed."""
    timestamp = int(now.timestamp())
    return {
        "Webhook-Id": call_id,
        "Webhook-Timestamp": str(timestamp),
        "Webhook-Signature": " ".join(signature(key, call_id, timestamp, body) for key in keys),
    }


def signature(key: bytes, call_id: str, timestamp: int, body: bytes) -> str:
    signed = f"{call_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def key_of(name: str, secret: str) -> bytes:
    """The key behind a secret: base64 after `whsec_`, or the text itself."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise SecretMissing(f'secret "{name}" is not base64 after {PREFIX}') from None


def secret_for(receiver: str, secret_key: str) -> str:
    """What a receiver verifies with where the definition names no secret of its own.

    Each receiver (host, or host:port) has its own, made from FAIRLANE_SECRET_KEY: what one of them
    knows signs nothing that another would take.
    """
    key = hmac.digest(secret_key.encode(), _PURPOSE + receiver.lower().encode(), hashlib.sha256)
    return PREFIX + base64.b64encode(key).decode()
