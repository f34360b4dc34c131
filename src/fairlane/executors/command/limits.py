"""What a command may use. All but the sizes of a file and of the table of open files hold for the
command and everything that it starts, taken together."""

from dataclasses import asdict, dataclass
from typing import Any

TAIL = 65_536


@dataclass(frozen=True, kw_only=True)
class Limits:
    cpu_seconds: int | None = None
    memory_mb: int | None = None
    processes: int | None = 256
    open_files: int | None = 1_024
    file_size_mb: int | None = None
    output_bytes: int = TAIL  # kept of each stream; the rest is counted
    max_output_bytes: int | None = None  # of both; over it the command is killed
    nice: int = 5

    def as_order(self) -> dict[str, Any]:
        return asdict(self)


# The least and the most of each, and whether null lifts it.
RANGES: dict[str, tuple[int, int, bool]] = {
    "cpu_seconds": (1, 31_536_000, True),
    "memory_mb": (1, 16_777_216, True),
    "processes": (1, 100_000, True),
    "open_files": (16, 1_048_576, True),
    "file_size_mb": (1, 16_777_216, True),
    "output_bytes": (0, TAIL, False),
    "max_output_bytes": (0, 2**53, True),
    "nice": (0, 19, False),
}
