"""What an attempt came to, as it may be kept: results that fit, errors without secrets."""

from dataclasses import replace

from fairlane import artifacts, schemas
from fairlane.core import json
from fairlane.errors import Fault
from fairlane.executors.base import cut
from fairlane.outcome import NOTHING, Done, Failed, Outcome
from fairlane.redact import KNOWN, Redactor
from fairlane.schemas.schema import listed
from fairlane.worker.attempt import Attempt


def check(attempt: Attempt, outcome: Outcome) -> Outcome:
    """The outcome as it is reported. A result that does not fit is a failed attempt."""
    if outcome is NOTHING:
        return outcome
    if isinstance(outcome, Done) and (faults := _faults(attempt, outcome.result)):
        outcome = Failed(
            {
                "type": "ResultInvalid",
                "message": f"the result of {attempt.key} does not fit: {listed(faults)}",
                "errors": [fault._asdict() for fault in faults],
            }
        )
    match outcome:
        case Failed(error):
            return replace(outcome, error=cut(attempt.redactor().error(error)))
        case Done(result, errors) if errors or (result and _may_tell(attempt)):
            scrub = attempt.redactor()
            return replace(
                outcome,
                result=result and json.dumps(scrub.result(json.loads(result))),
                errors=errors and json.dumps(scrub.value(json.loads(errors))),
            )
        case _:
            return outcome


def _may_tell(attempt: Attempt) -> bool:
    """Whether there is a secret that a result could have in it."""
    if attempt.definition is None:
        return False
    redactor = Redactor.of(attempt.definition)
    return bool(redactor.result_mask or redactor.mask or KNOWN)


def _faults(attempt: Attempt, result: str | None) -> list[Fault]:
    definition = attempt.definition
    if definition is None or result is None:
        return []
    has_schema = definition.result_schema is not None
    if not has_schema and '"artifacts"' not in result:
        return []  # the common case pays nothing
    value = json.loads(result)
    faults = schemas.check_result(definition, value) if has_schema else []
    return [*faults, *artifacts.faults(value)]
