"""Ids in paths: a UUID or a short id, wherever an id is taken."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path

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


JobId = Annotated[UUID, Depends(_job_id)]
