"""A payload that a person edited: what they were shown had no secrets in it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

from fairlane import schemas
from fairlane.client.request import an_object, encoded
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.definitions.accept import accept

Send = Callable[[Call], Awaitable[list[Any]]]  # rows by name


async def replayed_with(
    send: Send, job_id: UUID, edited: Mapping[str, Any], tenant: str | None, limit: int
) -> tuple[dict[str, Any], str | None]:
    """The payload that is meant, validated and completed, and its hash.

    A marker that was left where it was shown stands for the secret behind it. What is not there is
    left for the verb to refuse.
    """
    what = f"job {job_id}"
    payload = an_object(what, edited)
    json.check(payload, f"the payload of {what}")
    encoded(what, payload, limit)
    rows = await send(
        Call(
            """
            select fairlane.unredacted($2::text::jsonb, l.payload)::text as payload,
                   d.key, d.version, d.executor, d.settings::text as settings,
                   d.arg_schema::text as arg_schema
              from fairlane.dead_letter l
              join fairlane.definition d on d.id = l.definition_id
              join fairlane.tenant t on t.id = l.tenant_id
             where l.id = $1
               and ($3::text is null or t.slug = $3)
            """,
            (job_id, json.dumps(payload), tenant),
        )
    )
    if not rows:
        return payload, None
    row = rows[0]
    payload = accept(
        row["key"],
        json.loads(row["arg_schema"]),
        json.loads(row["payload"]),
        executor=row["executor"],
        settings=json.loads(row["settings"]),
    )
    encoded(what, payload, limit)
    return payload, schemas.inputs_hash(row["key"], row["version"], payload)
