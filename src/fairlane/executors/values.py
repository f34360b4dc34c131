"""The values that a template may name."""

from typing import Any

from fairlane.executors.template import Name
from fairlane.worker.attempt import Attempt

# A root is one value, or has these members; None: any.
MEMBERS: dict[str, frozenset[str] | None] = {
    "tenant": frozenset({"id", "slug"}),
    "job": frozenset({"id"}),
    "attempt": frozenset({"number"}),
    "definition": frozenset(),
    "version": frozenset(),
    "correlation_id": frozenset(),
    "payload": None,
    "secret": None,
}

ROOTS = frozenset(MEMBERS) - {"secret"}  # secrets only where a place is made for them
ROOTS_AND_SECRETS = frozenset(MEMBERS)


def values_of(attempt: Attempt) -> dict[str, Any]:
    """What the placeholders of this attempt stand for; `secret` is looked up apart."""
    return {
        "tenant": {"id": str(attempt.tenant_id), "slug": attempt.tenant},
        "job": {"id": str(attempt.job_id)},
        "attempt": {"number": attempt.number},
        "definition": attempt.key,
        "version": attempt.version,
        # A job that came without one is traced by its own id.
        "correlation_id": attempt.correlation_id or str(attempt.job_id),
        "payload": attempt.payload or {},
    }


def misnamed(name: Name) -> str | None:
    """What is wrong with a name, whatever the job; None when it can stand for a single value."""
    root, *steps = name
    members = MEMBERS.get(root)
    if members is None:
        return (
            None if steps or root not in MEMBERS else f"{{{root}}} is not one value; name a member"
        )
    if not members:
        return f"{{{root}}} has no members" if steps else None
    if len(steps) != 1 or steps[0] not in members:
        known = " and ".join(f"{{{root}.{member}}}" for member in sorted(members))
        return f"{{{'.'.join(name)}}} names no value; there are {known}"
    return None
