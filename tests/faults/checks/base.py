"""What a check answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from faults.history import History


@dataclass(frozen=True)
class Violation:
    """What went wrong, and the events that show it."""

    words: str
    events: tuple[Any, ...]


Check = Callable[[History], Iterator[Violation]]
