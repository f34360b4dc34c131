"""How far a job has come, out of what it says of itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """`share` from 0 to 1 where the job tells how much there is in all."""

    share: float | None = None
    text: str = ""

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> "Progress":
        said = job["progress"]
        if not isinstance(said, Mapping):
            return cls()
        done, total = _number(said.get("done")), _number(said.get("total"))
        share = None if done is None or not total else min(max(done / total, 0.0), 1.0)
        words = []
        if share is not None:
            words.append(f"{share * 100:.0f}%")
            words.append(f"{done:g} of {total:g}")
        elif done is not None:
            words.append(f"{done:g} done")
        if isinstance(message := said.get("message"), str) and message:
            words.append(message[:200])
        return cls(share, " · ".join(words))

    @property
    def percent(self) -> int:
        return round((self.share or 0) * 100)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


@dataclass(frozen=True)
class Items:
    """The named parts of a job, as its progress tells of them: all counted, the first of each
    state by name."""

    total: int
    in_progress: int
    completed: int
    failed: int
    now: Sequence[str] = ()
    done: Sequence[str] = ()
    wrong: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> "Items | None":
        said = job["progress"]
        found = said.get("items") if isinstance(said, Mapping) else None
        counts = found.get("counts") if isinstance(found, Mapping) else None
        # `items` was anybody's word before it was ours.
        if not isinstance(found, Mapping) or not isinstance(counts, Mapping):
            return None
        return cls(
            total=_count(found.get("total")),
            in_progress=_count(counts.get("in_progress")),
            completed=_count(counts.get("completed")),
            failed=_count(counts.get("failed")),
            now=[each for each in _list(found, "in_progress") if isinstance(each, str)],
            done=[each for each in _list(found, "completed") if isinstance(each, str)],
            wrong=[each for each in _list(found, "failed") if isinstance(each, Mapping)],
        )

    @property
    def text(self) -> str:
        words = [f"{self.completed:,} of {self.total:,}"]
        if self.failed:
            words.append(f"{self.failed:,} failed")
        if self.in_progress:
            words.append(f"{self.in_progress:,} in progress")
        return " · ".join(words)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    return value if isinstance(value, list) else []
