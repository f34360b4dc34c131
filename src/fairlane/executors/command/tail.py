"""The end of a stream: so many bytes are kept, all are counted."""

MARGIN = 8_192  # bytes kept besides, for the worker to find a secret that is half cut off


class Tail:
    """In the guard, which knows no secrets: what it keeps is scrubbed and cut by the worker."""

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._keep = keep and keep + MARGIN
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self._bytes += data[-self._keep :] if self._keep else b""
        if len(self._bytes) > 2 * self._keep:  # not at every write: it moves what is kept
            del self._bytes[: -self._keep]

    def told(self) -> tuple[str, int, bool]:
        """UTF-8 that can be stored, how many bytes there were in all, and whether some are gone."""
        data = bytes(self._bytes[-self._keep :]) if self._keep else b""
        gone = self.total > len(data)
        if gone:
            data = _at_border(data)
        text = data.decode("utf-8", "replace").replace("\x00", "\\x00")
        # What stands for bytes that are no UTF-8 takes more room than they did.
        encoded = text.encode()
        if len(encoded) > self._keep:
            text, gone = _at_border(encoded[-self._keep :]).decode(), True
        return text, self.total, gone


def last_of(text: str, keep: int, gone: bool) -> str:
    """The last bytes of a text. Where something is gone it begins with a line, if one is near."""
    data = text.encode()
    if len(data) <= keep and not gone:
        return text
    return _from_a_line(data[-keep:]).decode() if keep else ""


def _from_a_line(data: bytes) -> bytes:
    """Begin at a line where one begins soon: half a line, or half a secret in it, helps nobody."""
    end = data.find(b"\n", 0, min(1_024, len(data) // 16))
    return _at_border(data) if end < 0 else data[end + 1 :]


def _at_border(data: bytes) -> bytes:
    """Without the rest of a character that was cut in two."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
