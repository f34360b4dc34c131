"""Jobs of Fairlane's own: they belong to a tenant of their own, and only Fairlane makes them."""

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fairlane.outcome import Failed, Outcome

if TYPE_CHECKING:
    from fairlane.task import Task
    from fairlane.worker.attempt import Attempt

OWN = ("fairlane.alert.", "fairlane.mail")  # what the keys of its definitions begin with

# As fairlane.make_system_tenant() has it: fairlane.id_of('tenant', 'fairlane-system').
SYSTEM_TENANT = UUID(bytes=hashlib.sha256(b'["tenant","fairlane-system"]').digest()[:16])


@cache
def tasks() -> "dict[tuple[str, str], Task[..., Any]]":
    """Those that every worker can run, whatever its app."""
    from fairlane.system.mail import system

    return system.tasks


class OwnOnly:
    """Refuses a job of another tenant: what these send, they send in Fairlane's name."""

    async def run(self, attempt: "Attempt") -> Outcome:
        message = f'"{attempt.key}" is Fairlane\'s own; nobody else enqueues it'
        return Failed({"type": "Refused", "message": message}, final=True)
