"""How far a job has come, out of what it says of itself."""

from collections.abc import Mapping
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
