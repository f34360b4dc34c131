"""Refusing a filter that names what is not there: an empty list would look like an answer."""

from fairlane.cli.session import Session
from fairlane.errors import DefinitionNotFound, QueueNotFound


async def check_names(
    db: Session,
    *,
    tenant: str | None = None,
    queue: str | None = None,
    definition: str | None = None,
) -> None:
    if tenant is not None:
        await db.fetch("select fairlane.tenant_named($1)", tenant)
    if queue is not None and not await db.fetch(
        "select from fairlane.queue where name = $1", queue
    ):
        raise QueueNotFound(f'queue "{queue}" is unknown; see: fairlane queues list')
    if definition is not None and not await db.fetch(
        "select from fairlane.definition where key = $1 limit 1", definition
    ):
        raise DefinitionNotFound(
            f'definition "{definition}" is unknown; see: fairlane definitions list'
        )
