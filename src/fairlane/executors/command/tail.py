"""The end of a stream: so many bytes are kept, all are counted."""


class Tail:
    def __init__(self, keep: int) -> None:
        self.total = 0
        self._keep = keep
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self._bytes += data[-self._keep :] if self._keep else b""
        if len(self._bytes) > 2 * self._keep:  # not at every write: it moves what is kept
            del self._bytes[: -self._keep]

    @property
    def text(self) -> str:
        """As UTF-8 that can be stored, and no longer than what is kept."""
        return storable_tail(bytes(self._bytes), self._keep, self.total)


def storable_tail(data: bytes, keep: int, total: int) -> str:
    data = data[-keep:] if keep else b""
    if total > len(data):
        data = _from_a_line(data)
    text = data.decode("utf-8", "replace").replace("\x00", "\\x00")
    # What stands for bytes that are no UTF-8 takes more room than they did.
    encoded = text.encode()
    return text if len(encoded) <= keep else _at_border(encoded[-keep:]).decode()


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
