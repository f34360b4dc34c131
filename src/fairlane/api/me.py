"""/me and /tokens: who calls, and what lets others call."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from fairlane.access import tokens
from fairlane.access.roles import Role
from fairlane.api.answers import answer, page_of
from fairlane.api.here import Here
from fairlane.api.models.callers import MeOut, NewTokenOut, TokenIn, TokenList, TokenOut
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayGiveTokens, SignedIn
from fairlane.api.route import PREFIX, Route
from fairlane.api.token_service import end_token, make_token

router = APIRouter(prefix=PREFIX, tags=["access"], route_class=Route)


@router.get("/me", response_model=MeOut, summary="Show who calls")
async def me(who: SignedIn) -> Response:
    return answer(
        {
            "subject": who.subject,
            "role": who.role.value,
            "tenant": who.tenant,
            "token_id": who.token_id,
            "expires_at": who.expires_at,
        }
    )


@router.get("/tokens", response_model=TokenList, summary="List tokens")
async def list_tokens(
    who: MayGiveTokens, here: Here, part: Annotated[Page, Depends(page)]
) -> Response:
    """An admin's tenant's; for an operator who names no tenant, all."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        found = await tokens.tokens(connection, who.tenant, after=part.after, most=part.rows)
    shown = found[part.offset : part.offset + part.limit]
    cursor = shown[-1].id if len(found) == part.rows else None
    return page_of([token.as_dict() for token in shown], cursor)


@router.post("/tokens", status_code=201, response_model=NewTokenOut, summary="Make a token")
async def create_token(who: MayGiveTokens, here: Here, body: TokenIn) -> Response:
    """Its text is shown in this answer and never again. An admin makes tokens of its own tenant;
    an operator also those of operators and workers, which belong to none."""
    lasts = body.expires_in_seconds
    made = await make_token(here, who, Role(body.role), body.name, lasts)
    return answer(made.as_dict(), 201)


@router.delete("/tokens/{token_id}", response_model=TokenOut, summary="Revoke a token")
async def revoke_token(
    token_id: Annotated[str, Path(min_length=1, max_length=64)], who: MayGiveTokens, here: Here
) -> Response:
    """It ends at once, and with it the streams that it opened."""
    return answer((await end_token(here, who, token_id)).as_dict())
