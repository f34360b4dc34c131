"""The text of a token: fl_<id>_<secret and checksum>.

A scanner finds it by its prefix, and a typing error or a made-up one is refused by its checksum
before anybody asks the database.
"""

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass, field

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
PREFIX = "fl_"
ID_LENGTH = 8
SECRET_LENGTH = 30  # 178 bits
CHECKSUM_LENGTH = 6  # a CRC-32 in base 62

PATTERN = re.compile(r"fl_([0-9A-Za-z]{8})_[0-9A-Za-z]{36}")


@dataclass(frozen=True)
class Secret:
    """A token's text, and the two things that are kept of it."""

    text: str = field(repr=False)
    id: str

    @property
    def hash(self) -> bytes:
        # The secret is random and long: nothing is gained by a slow hash.
        return hashlib.sha256(self.text.encode()).digest()


def make() -> Secret:
    token_id = _random(ID_LENGTH)
    body = f"{PREFIX}{token_id}_{_random(SECRET_LENGTH)}"
    return Secret(body + checksum(body), token_id)


def read(text: str) -> Secret | None:
    """The token that this text is, if it can be one of ours at all."""
    found = PATTERN.fullmatch(text)
    if found is None or checksum(text[:-CHECKSUM_LENGTH]) != text[-CHECKSUM_LENGTH:]:
        return None
    return Secret(text, found[1])


def checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
