"""`fairlane enqueue`: one job from the shell."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli import params
from fairlane.cli.render import print_json
from fairlane.cli.session import Session, actor, with_database

if TYPE_CHECKING:
    from fairlane.client.kinds import Fitted
    from fairlane.client.request import Request

PRIORITY = click.IntRange(-(2**31), 2**31 - 1)


@click.command()
@click.argument("key")
@click.option("--tenant", required=True, help="Whose job it is.")
@params.option(
    "--payload", parse=params.payload, metavar="JSON|-", help="Its input; - reads stdin."
)
@click.option("--priority", type=PRIORITY, metavar="N", help="Lower goes first; 100 if not given.")
@params.option("--at", parse=params.moment, metavar="TIME", help="Not before this time, or +5m.")
@click.option("--dedupe-key", metavar="K", help="At most one live job of the tenant has it.")
@click.option("--concurrency-key", metavar="K", help="Jobs of one key run one after the other.")
@click.option("--correlation-id", metavar="C", help="Kept on the job and in its log lines.")
@click.option("--version", metavar="V", help="Of the definition; the newest if not given.")
@click.option(
    "--reuse/--no-reuse",
    default=None,
    help="A job that succeeded with the same inputs will do; the definition says if not given.",
)
@click.option("--wait", is_flag=True, help="Follow it to its end; exit 0 only on success.")
@params.json_option
@with_database
async def enqueue(
    db: Session,
    /,
    key: str,
    tenant: str,
    payload: dict[str, Any] | None,
    at: datetime | timedelta | None,
    wait: bool,
    as_json: bool,
    **fields: Any,
) -> int:
    """Enqueue a job of the definition KEY; prints its id."""
    from fairlane.cli.shapes import job as shape
    from fairlane.cli.wait import JOB, wait_for
    from fairlane.core import calls
    from fairlane.observe import trace

    payload = payload or {}
    refuse_large(payload, key, db.settings.payload_limit)
    validated = await fit(db, key, fields["version"], tenant, payload)
    request = {
        "tenant": tenant,
        "definition": key,
        **fields,
        "payload": validated.payload,
        "version": validated.version,
        "inputs_hash": validated.inputs_hash,
        "scheduled_for": await db.now() + at if isinstance(at, timedelta) else at,
        "created_by": actor(),
        "trace": trace.of_environment(),
    }
    (answer,) = await db.change(calls.enqueue([request]))
    if answer["warning"]:
        click.echo(f"fairlane: warning: {answer['warning']}", err=True)
    if answer["reused"] or answer["deduplicated"]:
        why = (
            "has succeeded with the same inputs"
            if answer["reused"]
            else "is live and does the same"
        )
        click.echo(f"job {answer['id']} {why}: no new one was made", err=True)
    if not as_json:
        # At once, also when we go on to wait: a script may want to look at the job meanwhile.
        click.echo(answer["id"])
    if wait:
        row = await wait_for(db, answer["id"])
    else:
        (row,) = await db.fetch(JOB, answer["id"])
    if as_json:
        extra = {"warning": answer["warning"]} if answer["warning"] else {}
        found = {"deduplicated": answer["deduplicated"], "reused": bool(answer["reused"])}
        print_json({**shape(row), **found, **extra})
    return 0 if not wait or row["status"] == "succeeded" else 1


async def fit(
    db: Session, key: str, version: str | None, tenant: str, payload: dict[str, Any]
) -> "Request":
    """The request by the same rules as in the library: valid, complete, of a version."""
    from fairlane.client.kinds import Kinds
    from fairlane.client.request import Request

    steps = Kinds().fit(
        [Request(tenant=tenant, definition_key=key, version=version or None, payload=payload)]
    )
    try:
        call = next(steps)
        while True:
            rows = await db.send(call)
            call = steps.send([next(iter(row.values())) for row in rows])
    except StopIteration as done:
        fitted: Fitted = done.value
        return fitted.requests[0]


def refuse_large(payload: dict[str, Any], key: str, limit: int) -> None:
    from fairlane.core.json import dumps
    from fairlane.errors import PayloadTooLarge

    size = len(dumps(payload).encode())
    if size > limit:
        raise PayloadTooLarge(
            f'the payload of "{key}" has {size} bytes, the limit is {limit}; '
            "store the data elsewhere and pass a reference"
        )
