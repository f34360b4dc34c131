"""Where `frappe.enqueue` was."""

from typing import Any

from tasks import app

from fairlane import Enqueued


async def enqueue_with_isolation(method: str, organization: str, **kwargs: Any) -> Enqueued:
    """Enqueue a method for an organisation, in the queue that QUEUE_CONFIG gives it.

    An organisation over its limit of jobs is not refused: the job is there, `warning` says so, and
    it is logged. It waits behind the organisation's own jobs, and behind nobody else's.
    """
    return await app.enqueue(method, kwargs, tenant=organization)
