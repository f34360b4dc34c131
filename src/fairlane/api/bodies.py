"""The bodies of calls, decoded by msgspec: three times as fast as the rest needs to be.

JSON that is not what it seems is refused: two members of one name, of which the caller cannot know
which one counts, and half characters.
"""

import json as stdlib
from collections import Counter
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta
from starlette.requests import Request

from fairlane.api.problems import Problem, of_msgspec
from fairlane.core import json
from fairlane.errors import Fault, PayloadInvalid

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Key = Annotated[str, Meta(min_length=1, max_length=512, pattern=r"^[^\x00]*$")]
Int4 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]

# Times that are stored: what no driver can read back would spoil every list that it stands in.
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(2200, 1, 1, tzinfo=UTC)


class JobIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A job to enqueue."""

    definition_key: Name
    payload: dict[str, Any] = {}
    version: Name | None = None
    priority: Int4 | None = None
    scheduled_for: Annotated[datetime, Meta(tz=True)] | None = None
    dedupe_key: Key | None = None
    concurrency_key: Key | None = None
    correlation_id: Name | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    reuse: bool | None = None


_plain = msgspec.json.Decoder()


async def job_in(request: Request) -> JobIn:
    return job_of(decoded(await request.body()))


async def json_of(request: Request) -> Any:
    return decoded(await request.body())


def job_of(value: Any) -> JobIn:
    """A body, or an item of a batch."""
    try:
        job = msgspec.convert(value, JobIn)
    except msgspec.ValidationError as error:
        raise of_msgspec(error) from None
    if job.scheduled_for is not None and not FIRST <= job.scheduled_for < LAST:
        raise invalid(Fault("/scheduled_for", "must lie between 1970 and 2200"))
    return job


def decoded(body: bytes) -> Any:
    try:
        value = _plain.decode(body)
    except msgspec.ValidationError as error:
        raise of_msgspec(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        refuse_halves(body)
        raise not_json() from None
    # A member that is overwritten takes its colon with it. Whatever else changes their number is
    # looked at closely, too, and only that.
    if body.count(b":") != _written(value).count(":") or b"\\u003" in body:
        refuse_twice(body)
    return value


def _written(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        raise not_json() from None


def refuse_halves(body: bytes) -> None:
    """Say where half a character stands: msgspec takes it for the end of the text."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return
    try:
        json.check(stdlib.loads(body, parse_constant=_no_constant), "the body")
    except PayloadInvalid as error:
        raise Problem(422, str(error), "invalid", error.faults) from None
    except (ValueError, RecursionError):
        return


def refuse_twice(body: bytes) -> None:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            pointer = json.shortened(json.pointer_to("", twice[: json.LONGEST]))
            raise invalid(Fault(pointer.replace("\x00", "\\0"), "stands there twice; say it once"))
        return found

    try:
        stdlib.loads(body, object_pairs_hook=members)
    except RecursionError:
        raise not_json() from None


def invalid(fault: Fault) -> Problem:
    return Problem(422, f"the request is invalid: {fault}", "invalid", [fault])


def not_json() -> Problem:
    return Problem(400, "the body is not JSON", "not-json")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
