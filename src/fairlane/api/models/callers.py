"""Who calls, and the tokens of a tenant."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from fairlane.api.models.base import PLAIN, In, Out


class MeOut(Out):
    subject: str = Field(examples=["token:Ab12Cd34"])
    role: Literal["viewer", "member", "admin", "operator", "worker"]
    tenant: str | None
    token_id: str | None
    expires_at: datetime | None


class TokenIn(In):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={"examples": [{"role": "member", "name": "the shop"}]},
    )

    role: Literal["viewer", "member", "admin", "operator", "worker"]
    name: str = Field("", max_length=200, pattern=PLAIN)
    expires_in_seconds: int | None = Field(None, ge=1, le=3_153_600_000)


class TokenOut(Out):
    id: str
    name: str
    role: Literal["viewer", "member", "admin", "operator", "worker"]
    tenant: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewTokenOut(TokenOut):
    token: str = Field(description="Shown this once.")


class TokenList(Out):
    items: list[TokenOut]
    next_cursor: str | None
