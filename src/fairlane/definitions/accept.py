"""May a job of this definition have this payload? One answer for every way in."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlane import schemas
from fairlane.core import json
from fairlane.schemas.schema import unfit

if TYPE_CHECKING:
    from fairlane.executors.command.settings import CommandSettings


def accept(
    key: str,
    arg_schema: Mapping[str, Any],
    payload: Any,
    *,
    executor: str = "python",
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The payload with its defaults, if it fits the schema and what is made of it; refused with
    every fault."""
    return fitted(
        key,
        schemas.compile(arg_schema, payload=True),
        arg_schema,
        payload,
        executor=executor,
        settings=settings,
    )


def fitted(
    key: str,
    schema: schemas.Schema,
    arg_schema: Mapping[str, Any],
    payload: Any,
    *,
    executor: str = "python",
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The same, for whoever keeps the schema compiled."""
    completed = schemas.fitted(key, schema, payload)
    if executor == "command":
        # A value that could pass for an option is no fault of the schema's, and is refused here.
        command = _command(json.dumps(settings or {}), json.dumps(arg_schema))
        if faults := command.faults(completed):
            raise unfit(key, faults)
    return completed


@lru_cache(256)
def _command(settings: str, arg_schema: str) -> "CommandSettings":
    from fairlane.executors.command.settings import CommandSettings

    return CommandSettings.read(json.loads(settings), json.loads(arg_schema))
