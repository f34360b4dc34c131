"""What an attempt came to by what became of its items."""

from dataclasses import replace
from typing import Any

from fairlane.core import json
from fairlane.outcome import Canceled, Done, Failed, Outcome
from fairlane.saying.ledger import Ledger

LISTED = 1_000  # items that are listed by name; the rest is counted
NAMED = 3  # of them in a sentence
SHORT = 500  # characters of an error in a list
NOT_FINISHED = "not finished"


def judged(items: Ledger, outcome: Outcome) -> Outcome:
    """Some failed: it succeeded with errors. All failed: the attempt did. What is still in progress
    when the attempt ends was not finished, and has failed."""
    items.end(NOT_FINISHED if isinstance(outcome, Done | Failed | Canceled) else None)
    if not isinstance(outcome, Done) or not (failed := items.failed()):
        return outcome
    if len(failed) < len(items):
        return replace(outcome, errors=json.dumps(listed(failed)))
    return Failed(all_failed(failed))


def all_failed(failed: list[dict[str, Any]]) -> dict[str, Any]:
    some = "; ".join(f"{each['name']}: {each['error']}" for each in listed(failed)[:NAMED])
    more = f"; and {len(failed) - NAMED:,} more" if len(failed) > NAMED else ""
    what = "its only item" if len(failed) == 1 else f"all {len(failed):,} items"
    return {
        "type": "ItemsFailed",
        "message": f"{what} failed: {some}{more}",
        "errors": listed(failed, 100),
    }


def listed(failed: list[dict[str, Any]], most: int = LISTED) -> list[dict[str, Any]]:
    """Those that failed, by name, each with its error; the last entry counts what is left out."""
    shown = [{"name": each["name"], "error": each["error"][:SHORT]} for each in failed[:most]]
    if len(failed) > most:
        shown.append({"name": None, "error": f"{len(failed) - most:,} more items failed"})
    return shown
