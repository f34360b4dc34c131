"""What a guard tells of its command, passed on to the job's context."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fairlane.context import JobContext
from fairlane.core import json
from fairlane.executors.base import storable
from fairlane.executors.command.tail import MARGIN, last_of
from fairlane.executors.cuts import beginning, without_start
from fairlane.redact import speaking
from fairlane.saying.ledger import State, name_of

LEVELS = ("debug", "info", "warning", "error")
QUOTED = 120  # characters of a line that was ignored
STATES = get_args(State)
STREAMS: tuple[Literal["stdout", "stderr"], ...] = ("stdout", "stderr")


@dataclass(frozen=True)
class Ended:
    """How a command ended, as its guard tells it."""

    trouble: str  # what kept it from beginning
    code: int | None
    signal: str | None
    by_itself: bool  # false: the guard killed it
    asked: bool  # it had been told to stop
    over: str | None  # the limit that it went over
    output: dict[str, tuple[str, int]]  # the end of each stream, and how many bytes it had
    result: str | None  # the line that has it
    result_too_large: bool
    ignored: tuple[int, str]


class Hearing:
    """Hears the lines of one run. What a command says wrongly is its own loss, never the job's."""

    def __init__(self, ctx: JobContext, keep: int) -> None:
        self._ctx = ctx
        self._keep = keep  # bytes of each stream
        self._ended: Ended | None = None

    def hear(self, line: bytes) -> None:
        try:
            told = json.loads(line)
        except ValueError:  # the guard was killed in the middle of a line
            return
        if output := told.get("output"):
            # It goes on: the rest of what begins here may be on its way.
            going_on = {
                stream: (speaking().unfinished(text), total)
                for stream, (text, total) in self._kept(output).items()
            }
            self._show(going_on)
        if report := told.get("report"):
            self._pass_on(report)
        if ended := told.get("ended"):
            ended["output"] = self._kept(ended["output"])
            self._ended = Ended(**ended)
            self._show(self._ended.output)

    def end(self) -> Ended | None:
        """How it ended; None when nobody told."""
        if self._ended is not None and self._ended.ignored[0]:
            count, first = self._ended.ignored
            self._ctx.log(
                f"{count} lines of the command's report were ignored; "
                f"the first one {beginning(first, QUOTED)}",
                level="warning",
            )
        return self._ended

    def _kept(self, output: dict[str, tuple[str, int, bool]]) -> dict[str, tuple[str, int]]:
        return {
            stream: (_end_of(text, self._keep, gone), total)
            for stream, (text, total, gone) in output.items()
        }

    def _show(self, output: dict[str, tuple[str, int]]) -> None:
        for stream in STREAMS:
            if stream in output and output[stream][1]:
                self._ctx.output(stream, *output[stream])

    def _pass_on(self, report: str) -> None:
        try:
            said: dict[str, Any] = json.loads(report)
        except (ValueError, RecursionError):
            return
        said.pop("result", None)
        progress = said.pop("progress", None)
        # A phase begins without progress, and what is left in the line is data of the phase.
        told = [self._log(said), self._item(said), self._phase(said), self._progress(progress)]
        if not any(told):
            self._ctx.log("a line of the command's report says nothing known", level="debug")

    def _log(self, said: dict[str, Any]) -> bool:
        message, level = said.pop("log", None), said.pop("level", "info")
        if not isinstance(message, str):
            return False
        self._ctx.log(storable(message), level=level if level in LEVELS else "info")
        return True

    def _item(self, said: dict[str, Any]) -> bool:
        name, state = said.pop("item", None), said.pop("state", None)
        error = said.pop("error", None)
        if state not in STATES or not isinstance(name, str):
            return False
        try:
            self._ctx.ledger.move(name_of(name), state, "failed" if error is None else str(error))
        except ValueError as refused:  # no name, or one too many
            self._ctx.log(str(refused), level="warning")
        return True

    def _progress(self, said: Any) -> bool:
        match said:
            case bool() | None:
                return False
            case int() | float() as done:
                self._ctx.progress(done)
            case dict() as fields:
                known = {
                    "done": _of((int, float), fields.pop("done", fields.pop("current", None))),
                    "total": _of((int, float), fields.pop("total", None)),
                    "message": _of(str, fields.pop("message", None)),
                }
                self._call(self._ctx.progress, known, fields)
            case _:
                return False
        return True

    def _phase(self, said: dict[str, Any]) -> bool:
        name = said.pop("phase", None)
        if not isinstance(name, str):
            return False
        self._call(self._ctx.phase, {"name": storable(name)}, said)
        return True

    def _call(self, tell: Callable[..., None], known: dict[str, Any], data: dict[str, Any]) -> None:
        # A name of theirs may be one of ours.
        tell(**known, **{k: v for k, v in data.items() if k not in known and k != "self"})


def _end_of(text: str, keep: int, gone: bool) -> str:
    """The end of a stream. Where something is cut off it has been scrubbed before."""
    if not gone and len(text.encode()) <= keep:
        return text
    scrubbed = speaking().text(text)
    if gone:
        margin = len(scrubbed.encode()[:MARGIN].decode(errors="ignore"))
        scrubbed = without_start(scrubbed, margin)
    return last_of(scrubbed, keep, gone)


def _of(kind: type | tuple[type, ...], value: Any) -> Any:
    return value if isinstance(value, kind) and not isinstance(value, bool) else None
