"""Reads what PostgreSQL's own output plugin for logical replication says: rows, by transaction."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from faults.history import Change
from faults.moves import UNCHANGED

# The server counts microseconds from the year 2000.
EPOCH = 946_684_800.0


@dataclass
class Decoder:
    """Turns messages into changes; a transaction is told once it is whole."""

    of_wall: float  # what to take from a time of day to have one of the run
    tables: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    _open: list[tuple[str, str, dict[str, str | None]]] = field(default_factory=list)
    _xid: int = 0

    def read(self, messages: Iterable[bytes]) -> Iterator[list[Change]]:
        for data in messages:
            match data[:1]:
                case b"B":
                    self._xid = struct.unpack_from("!I", data, 17)[0]
                    self._open = []
                case b"R":
                    self._relation(data)
                case b"I":
                    self._row("insert", data, 5)
                case b"U":
                    self._row("update", data, 5)
                case b"D":
                    self._row("delete", data, 5)
                case b"C":
                    yield self._commit(data)
                case _:
                    pass

    def _commit(self, data: bytes) -> list[Change]:
        _, end, stamp = struct.unpack_from("!QQq", data, 2)
        at = stamp / 1e6 + EPOCH - self.of_wall
        return [Change(end, self._xid, at, table, what, row) for table, what, row in self._open]

    def _relation(self, data: bytes) -> None:
        (oid,) = struct.unpack_from("!I", data, 1)
        _, at = _text(data, 5)
        name, at = _text(data, at)
        (count,) = struct.unpack_from("!H", data, at + 1)
        at += 3
        columns = []
        for _ in range(count):
            column, at = _text(data, at + 1)
            columns.append(column)
            at += 8
        self.tables[oid] = (name, columns)

    def _row(self, what: str, data: bytes, at: int) -> None:
        (oid,) = struct.unpack_from("!I", data, 1)
        table, columns = self.tables[oid]
        values, end = _tuple(data, at + 1)
        if what == "update" and data[at : at + 1] in (b"K", b"O"):
            values, _ = _tuple(data, end + 1)  # the old key comes first
        self._open.append((table, what, dict(zip(columns, values, strict=True))))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _tuple(data: bytes, at: int) -> tuple[list[str | None], int]:
    (count,) = struct.unpack_from("!H", data, at)
    at += 2
    values: list[str | None] = []
    for _ in range(count):
        kind = data[at : at + 1]
        at += 1
        if kind == b"t":
            (length,) = struct.unpack_from("!I", data, at)
            values.append(data[at + 4 : at + 4 + length].decode())
            at += 4 + length
        else:
            values.append(UNCHANGED if kind == b"u" else None)
    return values, at
