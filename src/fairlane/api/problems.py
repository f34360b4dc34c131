"""Problem documents (RFC 9457): what went wrong, in a sentence, from a closed list.

Nothing that the database or Python says of itself gets out: a refusal of ours is told in its own
words, anything else as a fault of the server with the correlation id to look for in its log.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import msgspec
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fairlane import errors
from fairlane.access import refusals
from fairlane.core import json
from fairlane.definitions.apply import PlanStale
from fairlane.errors import FairlaneError, Fault, IdInvalid, PayloadInvalid
from fairlane.scheduler.asking import FireRefused
from fairlane.scheduler.store import TriggerChanged

log = logging.getLogger("fairlane.api")

MEDIA_TYPE = "application/problem+json"

TITLES = {
    400: "The request cannot be read",
    401: "A token is needed",
    403: "The role does not allow it",
    404: "It is not there",
    405: "The call does not exist",
    409: "It is in another state",
    413: "It is too large",
    415: "The body must be JSON",
    422: "The request is invalid",
    429: "It is over a limit",
    500: "The server failed",
    503: "The database does not answer",
    504: "It took too long",
}


@dataclass
class Problem(Exception):
    """What a call answers instead of what was asked for."""

    status: int
    detail: str
    slug: str = ""
    faults: Sequence[Fault] = ()
    retry_after: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        slug = self.slug or TITLES.get(self.status, "error").lower().replace(" ", "-")
        document: dict[str, Any] = {
            "type": f"/problems/{slug}",
            "title": TITLES.get(self.status, "The request failed"),
            "status": self.status,
            "detail": json.shortened(self.detail, LONGEST),
            **self.extra,
        }
        if self.faults:
            document["errors"] = [
                {
                    "pointer": json.shortened(fault.pointer),
                    "detail": json.shortened(fault.message, LONGEST),
                }
                for fault in self.faults
            ]
        return document

    def response(self) -> Response:
        headers = {}
        if self.status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="fairlane"'
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return Response(
            json.dumps(self.body()), self.status, headers=headers, media_type=MEDIA_TYPE
        )


@contextmanager
def within(place: str) -> Iterator[None]:
    """A pointer leads into the body. What is wrong with a part is found from that part on; what the
    database refuses of it, it refuses as a whole."""
    try:
        yield
    except PayloadInvalid as error:
        found = [Fault(place + each.pointer, each.message) for each in error.faults]
        error.faults = found or [Fault(place, without_command(_line(error)))]
        raise


@contextmanager
def blaming(pointer: str, *kinds: type[FairlaneError]) -> Iterator[None]:
    """Errors of these kinds are about one field of the body, and the caller is told which."""
    try:
        yield
    except kinds as error:
        raise blamed(error, pointer) from None


def blamed(error: Exception, pointer: str) -> Problem:
    """The problem of an error, with its place in the body where it does not say one itself."""
    problem = problem_of(error)
    return replace(problem, faults=problem.faults or [Fault(pointer, problem.detail)])


def not_there(what: str = "job") -> Problem:
    """One answer for what is not there and for what is another's."""
    return Problem(404, f"there is no such {what}, or it is not yours", "not-found")


# One status for each error of ours; the nearest class of an error counts.
STATUSES: dict[type[Exception], tuple[int, str]] = {
    errors.LeaseLost: (409, "lease-lost"),
    errors.JobNotFound: (404, "not-found"),
    errors.WrongState: (409, "wrong-state"),
    errors.TenantNotFound: (404, "tenant-not-found"),
    errors.DefinitionNotFound: (422, "definition-not-found"),
    errors.DefinitionInactive: (422, "definition-inactive"),
    errors.QueueNotFound: (422, "queue-not-found"),
    errors.PlanNotFound: (422, "plan-not-found"),
    errors.PayloadTooLarge: (413, "payload-too-large"),
    errors.PayloadInvalid: (422, "payload-invalid"),
    errors.DefinitionInvalid: (422, "definition-invalid"),
    errors.TriggerInvalid: (422, "trigger-invalid"),
    errors.TriggerNotFound: (404, "not-found"),
    errors.OperationNotFound: (404, "not-found"),
    errors.WorkerNotFound: (404, "not-found"),
    errors.AlertNotFound: (404, "not-found"),
    TriggerChanged: (409, "changed-meanwhile"),
    FireRefused: (409, "not-fired"),
    errors.Faulty: (422, "invalid"),
    errors.RequestInvalid: (422, "invalid"),
    errors.ValueRefused: (422, "value-refused"),
    errors.BacklogFull: (429, "backlog-full"),
    errors.JobIdTaken: (409, "id-taken"),
    errors.TenantExists: (409, "tenant-exists"),
    IdInvalid: (422, "id-invalid"),
    refusals.Unauthenticated: (401, "unauthenticated"),
    refusals.Forbidden: (403, "forbidden"),
    refusals.TokenNotFound: (404, "token-not-found"),
    refusals.TokenRefused: (422, "token-refused"),
    refusals.TookTooLong: (504, "too-slow"),
    refusals.Busy: (503, "busy"),
    refusals.ProviderUnavailable: (503, "provider-unavailable"),
    PlanStale: (409, "changed-meanwhile"),
    errors.SchemaTooOld: (503, "schema-too-old"),
    errors.SchemaTooNew: (503, "schema-too-new"),
    errors.DatabaseUnavailable: (503, "unavailable"),
}

# Of these, the words are for the operator of the server, who finds them in the log.
UNTOLD = (
    refusals.ProviderUnavailable,
    errors.DatabaseUnavailable,
    errors.SchemaTooOld,
    errors.SchemaTooNew,
)
BACKLOG_PAUSE = 10  # seconds: a guess at when some of a full backlog is done

# What helps at a shell is no help here.
COMMANDS = ("see:", "define it with", "create it with", "change it with", "activate it with")
# What helps here in its place.
INSTEAD: dict[type[Exception], str] = {
    errors.DefinitionNotFound: "; GET /api/v1/definitions lists what may run"
}
LONGEST = 2000  # characters of a detail: some of it may be the caller's own text


# The connection is of no more use. asyncpg takes a farewell that the server sends to an idle one
# for a fault of its own, and says so by InternalClientError.
GONE = (
    *(OSError, asyncpg.PostgresConnectionError),
    *(asyncpg.InterfaceError, asyncpg.InternalClientError),
)


def problem_of(error: Exception) -> Problem:
    """The problem that an exception stands for; a fault of ours is logged and not told."""
    if isinstance(error, HTTPException) and isinstance(error.__cause__, Problem):
        error = error.__cause__  # a body that FastAPI was reading
    if isinstance(error, Problem):
        return error
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return _refusal(error, *STATUSES[kind])
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return _of_starlette(error)
    if isinstance(error, asyncpg.QueryCanceledError):
        return Problem(
            504, "the answer took longer than this server allows; narrow the filter", "too-slow"
        )
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        log.error("the database did not allow it: %s", error)
        return Problem(403, "who acts for one tenant changes nothing that is all's", "forbidden")
    if isinstance(error, asyncpg.DataError):
        return Problem(422, "a value is not one that the database can hold", "invalid")
    if isinstance(error, GONE):
        log.error("the database does not answer: %s", error)
        return Problem(503, "the database does not answer; try again", "unavailable", retry_after=1)
    if isinstance(error, asyncpg.LockNotAvailableError):
        return Problem(
            503, "somebody else is changing the same thing; try again", "busy", retry_after=1
        )
    if isinstance(error, (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)):
        return Problem(503, "it was undone for another; try again", "try-again", retry_after=1)
    if isinstance(error, asyncpg.OperatorInterventionError):
        return Problem(503, "the database is restarting; try again", "unavailable", retry_after=1)
    log.error("an unforeseen error", exc_info=error)
    return Problem(500, "the server failed; its log says more under the correlation id", "failed")


def _refusal(error: Exception, status: int, slug: str) -> Problem:
    said = _line(error)
    if isinstance(error, UNTOLD):
        log.error("%s", said)
        return Problem(503, "the database does not answer; try again", slug, retry_after=1)
    if isinstance(error, errors.JobNotFound):
        return not_there()
    return Problem(
        status,
        without_command(said) + INSTEAD.get(type(error), ""),
        slug,
        faults=getattr(error, "faults", ()),
        retry_after={429: BACKLOG_PAUSE, 503: 1}.get(status),
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def without_command(said: str) -> str:
    """The sentence without its last part, where that says what to type."""
    head, _, last = said.rpartition(";")
    return head if head and last.lstrip().startswith(COMMANDS) else said


def _invalid(error: RequestValidationError) -> Problem:
    faults = [_fault(each) for each in error.errors()]
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return Problem(400, "the body is not JSON", "not-json")
    told = "; ".join(str(fault) for fault in faults[:5])
    return Problem(422, f"the request is invalid: {told}", "invalid", faults)


def _fault(each: Mapping[str, Any]) -> Fault:
    where, *steps = each["loc"] or ("body",)
    pointer = ""
    for step in steps:
        pointer = json.pointer_to(pointer, step if isinstance(step, int) else step[:200])
    pointer = pointer.replace("\x00", "\\0")
    if where in ("query", "path", "header"):
        pointer = f"{where}:{pointer.removeprefix('/')}"
    message = str(each["msg"])
    return Fault(pointer, message[:1].lower() + message[1:])


def _of_starlette(error: HTTPException) -> Problem:
    match error.status_code:
        case 404:
            return Problem(404, "there is no such call; see /openapi.json", "no-such-call")
        case 405:
            return Problem(405, "this path has no such method; see /openapi.json", "no-such-method")
        case 400:
            return Problem(400, "the body is not JSON", "not-json")
        case status:
            return Problem(status, str(error.detail))


FIELD = re.compile(
    r"Object (?:(?P<missing>missing required)|contains unknown) field `(?P<name>.*)`", re.DOTALL
)


def of_msgspec(error: msgspec.ValidationError) -> Problem:
    """A body of the hot path: msgspec names the place as `$.payload`."""
    said, _, place = str(error).rpartition(" - at `$")
    if not said:
        said, place = place, ""
    pointer = ""
    # The steps are names of fields: what a caller calls something stands there as "...".
    for step in re.findall(r"\.([^.\[\]`]+)|\[(\d+|\.\.\.)\]", place.rstrip("`")):
        pointer = json.pointer_to(pointer, step[0] or step[1])
    if named := FIELD.fullmatch(said):
        pointer = json.pointer_to(pointer, named["name"])
        said = "is missing" if named["missing"] else "there is no such field"
    fault = Fault(json.shortened(pointer), json.shortened(said[:1].lower() + said[1:]))
    return Problem(422, f"the request is invalid: {fault}", "invalid", [fault])


def refused(error: FairlaneError) -> dict[str, Any]:
    """An item's answer in a batch."""
    return problem_of(error).body()
