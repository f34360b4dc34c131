"""The ledger of an attempt's items: where each stands, whoever moves it from whichever thread."""

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from fairlane.core.text import storable
from fairlane.executors.cuts import MARGIN, beginning

if TYPE_CHECKING:
    from fairlane.redact import Redactor

State = Literal["in_progress", "completed", "failed"]

MOST = 10_000  # items of one attempt; the database refuses more as well
LONGEST_NAME = 200  # characters
LONGEST_ERROR = 2_000

# How a move is told on: name, state, error, and whether it was begun anew after it had failed.
Tell = Callable[[str, State, str | None, bool], None]


class Ledger:
    """The last word counts, but what failed is not completed unless it was begun anew: of two who
    work at one item, the one that failed is heard."""

    def __init__(self, tell: Tell, scrub: "Callable[[], Redactor] | None" = None) -> None:
        self._tell = tell
        self._scrub = scrub  # makes what takes the job's secrets out of an error
        self._is_over = False
        self._items: dict[str, tuple[State, str | None]] = {}
        # Held while a move is told on, so that they are told in the order they were made.
        self._lock = threading.RLock()

    @property
    def names(self) -> list[str]:
        with self._lock:
            return list(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def state(self, name: str) -> State | None:
        found = self._items.get(name)
        return found and found[0]

    def error(self, name: str) -> str | None:
        found = self._items.get(name)
        return found and found[1]

    def failed(self) -> list[dict[str, Any]]:
        """Those that failed, in the order they were named."""
        with self._lock:
            return [
                {"name": name, "error": error}
                for name, (state, error) in self._items.items()
                if state == "failed"
            ]

    def begin(self, names: Iterable[str]) -> None:
        """All of them, or none."""
        with self._lock:
            new = [name for name in names if name not in self._items]
            self._refuse_too_many(len(new))
            for name in names:
                self.move(name, "in_progress")

    def move(self, name: str, state: State, error: str | BaseException | None = None) -> None:
        with self._lock:
            if self._is_over:
                return
            known = self._items.get(name)
            if known is None:
                self._refuse_too_many(1)
            entry = state, self._words(error) if state == "failed" else None
            if known == entry or (known and known[0] == "failed" and state == "completed"):
                return
            self._items[name] = entry
            self._tell(name, *entry, bool(known and known[0] == "failed"))

    def close(self, error: str | BaseException, names: Iterable[str] | None = None) -> None:
        """What is still in progress has failed."""
        with self._lock:
            for name in list(self._items if names is None else names):
                if self.state(name) == "in_progress":
                    self.move(name, "failed", error)

    def end(self, error: str | None = None) -> None:
        """The attempt is over: what is still in progress has failed, where an error says so, and
        whoever still works at an item, in a thread that outlived the task, is not heard."""
        with self._lock:
            if error is not None:
                self.close(error)
            self._is_over = True

    def _words(self, error: Any) -> str:
        said = message_of(error)
        return said if self._scrub is None else beginning(said, LONGEST_ERROR, self._scrub().text)

    def _refuse_too_many(self, new: int) -> None:
        if len(self._items) + new > MOST:
            raise ValueError(
                f"{len(self._items) + new:,} items, and the most is {MOST:,}; name groups of "
                "them, or count by ctx.progress"
            )


def name_of(name: Any) -> str:
    """An item's outcome is the job's: a name that cannot be kept is refused, not passed over."""
    if not isinstance(name, str):
        raise TypeError(f"the name of an item is text, not {type(name).__name__}: {name!r:.100}")
    kept = storable(name)
    if not kept.strip() or len(kept) > LONGEST_NAME:
        raise ValueError(
            f"the name of an item has 1 to {LONGEST_NAME} characters, not {len(kept)}: {kept:.60}"
        )
    return kept


def message_of(error: Any) -> str:
    """What went wrong, in words: some more than are kept, for who takes the secrets out."""
    if not isinstance(error, BaseException):
        said = _text(error) or "failed"
    else:
        kind = type(error).__name__
        said = _text(error)
        # The words of a KeyError are its key.
        said = f"{kind}: {said}" if isinstance(error, KeyError) else said or kind
    return storable(beginning(said, LONGEST_ERROR + MARGIN))


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # its own __str__ raises
        return ""
