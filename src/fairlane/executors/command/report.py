"""Lines that a command writes to its report descriptor: kept in bounds, sorted, the last result
held back until it ends."""

import json
import time

LONGEST = 1_048_576 + 4_096  # bytes of a line: a result at its limit, and what stands around it
A_SECOND = 50  # lines passed on
ITEMS_A_SECOND = 1_000  # of those that move an item: each counts, none stands for the one before


class Lines:
    """Cuts a stream into lines; one that is too long is skipped to its end."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False
        self.result: str | None = None
        self.too_large = False  # the last result was over the limit
        self.ignored = 0
        self.first_ignored = ""
        self._late: str | None = None  # the last that came too fast: it may be the one that counts
        self._second = 0
        self._passed = 0
        self._items = 0

    def add(self, data: bytes) -> list[str]:
        """What should be told now."""
        passed = []
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._keep(piece)
            if not self._skipping and (line := self._heard(bytes(self._rest))):
                passed.append(line)
            self._rest.clear()
            self._skipping = False
        self._keep(rest)
        return passed

    def late(self) -> list[str]:
        """The last of those that came too fast; ask about once a second."""
        late, self._late = self._late, None
        return [late] if late is not None else []

    def end(self) -> list[str]:
        """What is left; a last line may lack its end."""
        last = self.add(b"\n") if self._rest and not self._skipping else []
        return self.late() + last

    def _keep(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._rest += piece
        if len(self._rest) > LONGEST:
            if self._rest.lstrip().startswith(b'{"result"'):
                self.result, self.too_large = None, True
            self.ignore(f"of more than {LONGEST} bytes")
            self._rest.clear()
            self._skipping = True

    def _heard(self, line: bytes) -> str | None:
        if not line.strip():
            return None
        try:
            text = line.decode()
            said = json.loads(text)
        except (ValueError, RecursionError):
            self.ignore(f"that is not JSON{_quoted(line)}")
            return None
        if not isinstance(said, dict):
            self.ignore(f"that is no object{_quoted(line)}")
            return None
        if "result" in said:
            self.result, self.too_large = text, False
            if len(said) == 1:
                return None
        if len(line) > 65_536:
            self.ignore("of more than 65536 bytes")
            return None
        return self._in_turn(text, is_item="item" in said)

    def _in_turn(self, text: str, is_item: bool) -> str | None:
        now = int(time.monotonic())
        if now != self._second:
            self._second, self._passed, self._items = now, 0, 0
        if is_item and self._items < ITEMS_A_SECOND:
            self._items += 1
            return text
        self._passed += 1
        if self._passed <= A_SECOND:
            self._late = None
            return text
        if self._late is not None:
            self.ignore(f"over {A_SECOND} a second")
        self._late = text
        return None

    def ignore(self, why: str) -> None:
        self.ignored += 1
        self.first_ignored = self.first_ignored or why


def _quoted(line: bytes) -> str:
    """Whole or not at all: the worker takes the secrets out of it, and cuts it then."""
    return f": {line!r}" if len(line) <= 4_096 else f", of {len(line)} bytes"
