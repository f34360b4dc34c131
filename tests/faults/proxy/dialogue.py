"""Which answer belongs to which statement, and whether it has committed."""

from collections import deque
from dataclasses import dataclass, field

from faults.proxy.wire import texts


@dataclass
class Step:
    """What the server answers up to its next word that it is ready."""

    texts: list[str] = field(default_factory=list)
    is_begun: bool = False  # the answer has come in part
    is_committed: bool = False  # by the tag of one of its statements
    has_failed: bool = False


class Dialogue:
    """One connection's. `step` is what the server is answering."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque([Step()])  # the first is the greeting
        self._asking: Step | None = None  # being put together by the client
        self._statements: dict[str, str] = {}
        self._portals: dict[str, str] = {}
        self._transaction: list[str] = []

    @property
    def step(self) -> Step | None:
        return self._steps[0] if self._steps else None

    @property
    def under_way(self) -> list[str]:
        """The statements of the transaction so far."""
        return [*self._transaction, *(self.step.texts if self.step else [])]

    def asked(self, kind: bytes, body: bytes) -> None:
        """Keep account of which text each step will run."""
        if kind == b"p":  # a password is part of the greeting
            return
        if self._asking is None and kind in b"QPBDECFSH":
            self._asking = Step()
            self._steps.append(self._asking)
        step = self._asking
        if step is None:
            return
        match kind:
            case b"Q":
                step.texts.append(texts(body)[0])
            case b"P":
                name, text = texts(body)[:2]
                self._statements[name] = text
            case b"B":
                portal, name = texts(body)[:2]
                self._portals[portal] = self._statements.get(name, "")
            case b"E":
                step.texts.append(self._portals.get(texts(body)[0], ""))
            case _:
                pass
        if kind in b"QSF":
            self._asking = None

    def answered(self, kind: bytes, body: bytes) -> None:
        if self.step is None:
            return
        if kind == b"C":
            self.step.is_committed = not body.startswith(b"ROLLBACK")
        elif kind == b"E":
            self.step.has_failed = True

    def ready(self, state: bytes) -> list[str]:
        """The server is: what has been committed by that, if anything. In a transaction nothing is
        yet; outside, all that it held is or is not."""
        step, held = self._steps[0], self.under_way
        self._transaction = held if state == b"T" else []
        self._steps.popleft()
        is_committed = state == b"I" and step.is_committed and not step.has_failed
        return held if is_committed else []
