"""Which faults hold now, and what they have done: read and written in the proxy's own thread."""

from collections import Counter
from dataclasses import dataclass, field

from faults.proxy.wire import is_write


@dataclass
class State:
    is_dark: bool = False
    seconds: float = 0.0  # that an answer comes later,
    slow: str = ""  # to statements with this in them
    acks: int = 0  # answers still to be lost,
    unheard: str = ""  # to statements with this in them
    fired: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    def pause(self, texts: list[str]) -> float:
        return self.seconds if self.seconds and _meant(self.slow, texts) else 0.0

    def wants_ack(self, texts: list[str]) -> bool:
        """Whether the answer to these, once committed, is to be lost."""
        return self.acks > 0 and any(map(is_write, texts)) and _meant(self.unheard, texts)

    def lose(self, texts: list[str]) -> None:
        self.acks -= 1
        self.fired["lost_acks"] += 1
        self.lost.append("; ".join(texts))


def _meant(only: str, texts: list[str]) -> bool:
    return not only or any(only in text.lower() for text in texts)
