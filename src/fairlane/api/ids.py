"""Ids in paths and bodies: a UUID or a short id, wherever an id is taken."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from fairlane.errors import IdInvalid
from fairlane.ids import parse_id


async def _job_id(
    job_id: Annotated[
        str,
        Path(
            min_length=1,
            max_length=64,
            description="A UUID, or the short id.",
            examples=["0197b0a4-0c5e-7c3a-9d53-3f0e6a1b2c4d"],
        ),
    ],
) -> UUID:
    return parse_id(job_id)


def _in_a_body(given: Any) -> UUID:
    try:
        return parse_id(given)
    except IdInvalid as error:
        raise PydanticCustomError("id", "{said}", {"said": str(error)}) from None


JobId = Annotated[UUID, Depends(_job_id)]
Id = Annotated[UUID, BeforeValidator(_in_a_body, json_schema_input_type=str)]
