"""What a command's end means for its job."""

from typing import Any

from fairlane.core import json
from fairlane.executors.base import STREAM, storable
from fairlane.executors.command.codes import Verdict
from fairlane.executors.command.hearing import Ended
from fairlane.executors.command.limits import Limits
from fairlane.executors.command.settings import CommandSettings
from fairlane.executors.results import ResultInvalid, encode
from fairlane.outcome import Done, Failed, Outcome
from fairlane.redact import speaking

LAST_LINE = 500  # characters of the last line that stand in the message

UNITS = {
    "cpu_seconds": "seconds of CPU",
    "memory_mb": "MB of memory",
    "processes": "processes",
    "file_size_mb": "MB a file",
    "max_output_bytes": "bytes of output",
}


def was_stopped(ended: Ended, settings: CommandSettings) -> bool:
    """Whether it ended because it was told to. Many programs leave with 0 when they are asked to
    stop: once asked, only a result says that the work is done."""
    if ended.asked:
        return ended.result is None or ended.code not in settings.codes.success
    return not ended.by_itself and ended.over is None and not ended.trouble


def outcome_of(ended: Ended, settings: CommandSettings, key: str, result_limit: int) -> Outcome:
    if ended.trouble:
        return Failed({"type": "CommandNotStarted", "message": storable(ended.trouble)})
    if ended.over is not None:
        return Failed(_error(ended, _over(ended.over, settings.limits)) | {"limit": ended.over})
    if ended.code is None:
        return Failed(_error(ended, f"killed by {ended.signal}"))
    verdict = settings.codes.verdict(ended.code)
    if verdict is Verdict.SUCCESS:
        return _done(ended, key, result_limit)
    error = _error(ended, f"exit status {ended.code}")
    return Failed(error, final=verdict is Verdict.FINAL)


def _done(ended: Ended, key: str, result_limit: int) -> Outcome:
    try:
        if ended.result_too_large:
            raise ResultInvalid(
                f"the result of {key} is over its limit of {result_limit} bytes; "
                "store it elsewhere and return a reference"
            )
        return Done(encode(_result(ended), key, result_limit))
    except ResultInvalid as error:
        return Failed({"type": "ResultInvalid", "message": storable(str(error))})


def _result(ended: Ended) -> Any:
    if ended.result is None:
        return None
    try:
        return json.loads(ended.result)["result"]
    except (ValueError, RecursionError) as error:
        raise ResultInvalid(f"the result is not JSON: {error}") from None


def _over(limit: str, limits: Limits) -> str:
    return f"over its limit of {getattr(limits, limit)} {UNITS[limit]}"


def _error(ended: Ended, what: str) -> dict[str, Any]:
    # Scrubbed before anything is cut off: half a secret is not recognised.
    scrub = speaking().text
    tails = {stream: scrub(text) for stream, (text, _) in ended.output.items()}
    last = next((line for line in reversed(tails["stderr"].splitlines()) if line.strip()), "")
    message = f"{what}: {last.strip()[:LAST_LINE]}" if last else what
    return {
        "type": "CommandFailed",
        "message": storable(message),
        "exit_code": ended.code,
        "signal": ended.signal,
        **{f"{stream}_tail": text[-STREAM:] for stream, text in tails.items() if text},
    }
