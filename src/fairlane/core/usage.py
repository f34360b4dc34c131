"""What tenants used, by day: from the database, and as CSV."""

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any
from uuid import UUID

from fairlane.core.calls import Call

COLUMNS = (
    *("tenant", "day", "runs", "succeeded", "failed", "canceled", "attempts"),
    *("worker_seconds", "retried_worker_seconds", "queue_seconds"),
)
SECONDS = COLUMNS[-3:]


def usage(since: date, until: date, tenant_id: UUID | None = None) -> Call:
    """A row a tenant and day, both days included; with no tenant, everybody's."""
    return Call("select * from fairlane.usage($1, $2, $3)", (since, until, tenant_id))


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it is shown: seconds to the millisecond."""
    return {name: round(row[name], 3) if name in SECONDS else row[name] for name in COLUMNS}


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """RFC 4180, with a head."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([row[name] for name in COLUMNS] for row in map(shown, rows))
    return text.getvalue()
