"""Definitions from the application's own code, in the words of a file of definitions."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairlane.core.connect import connected
from fairlane.definitions import apply
from fairlane.definitions.check import check_all
from fairlane.definitions.rows import queues


async def apply_definitions(
    url: str, definitions: Sequence[Mapping[str, Any]]
) -> dict[tuple[str, str], str]:
    async with connected(url, name="fairlane client") as connection:
        written = check_all(definitions, queues=await queues(connection), what="the list")
        changes = await apply.apply(connection, written)
    return {(each.definition.key, each.definition.version): each.kind for each in changes}
