"""/t/{tenant}/keys: tokens of the tenant; made, shown once, revoked."""

from starlette.responses import Response

from fairlane.access import tokens
from fairlane.access.refusals import TokenNotFound, TokenRefused
from fairlane.access.roles import Role
from fairlane.access.tokens import NewToken
from fairlane.api import paging
from fairlane.api.problems import Problem, not_there
from fairlane.api.token_service import end_token, make_token
from fairlane.web.visit import Visit

ROWS = 100
ROLES = (
    ("viewer", "Viewer", "reads"),
    ("member", "Member", "also enqueues, cancels and runs again"),
    ("admin", "Admin", "also settles dead letters, keeps triggers and keys"),
)
DAY = 86400
LASTS = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "No end"))
DEFAULT = "90"


async def show(visit: Visit) -> Response:
    return await _page(visit)


async def _page(
    visit: Visit, status: int = 200, made: NewToken | None = None, fault: str = ""
) -> Response:
    after = visit.query("after")
    part = paging.Page(limit=ROWS, cursor=after[:64] or None)
    async with visit.reading() as connection:
        found = await tokens.tokens(connection, visit.tenant, after=part.after, most=part.rows)
    shown = found[:ROWS]
    return await visit.show(
        "keys.html",
        status,
        keys=[{**each.as_dict(), "state": _state(visit, each)} for each in shown],
        next=shown[-1].id if len(found) > ROWS else None,
        after=after,
        roles=ROLES,
        lasts=LASTS,
        said={name: visit.field(name) for name in ("name", "role", "days")}
        if fault
        else {"name": "", "role": "viewer", "days": DEFAULT},
        made=made,
        fault=fault,
    )


def _state(visit: Visit, token: tokens.Token) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at and token.expires_at <= visit.now else "good"


async def create(visit: Visit) -> Response:
    """Answers with the page itself: the text is in this answer and is kept nowhere."""
    role, days = visit.field("role"), visit.field("days")
    if role not in {name for name, _, _ in ROLES} or days not in dict(LASTS):
        raise Problem(422, "choose a role and how long the key lasts", "invalid")
    seconds = int(days) * DAY if days else None
    try:
        name = visit.field("name").strip()
        made = await make_token(visit.here, visit.who, Role(role), name, seconds)
    except TokenRefused as error:
        return await _page(visit, 422, fault=str(error))
    return await _page(visit, made=made)


async def revoke(visit: Visit) -> Response:
    try:
        revoked = await end_token(visit.here, visit.who, visit.part("token"))
    except TokenNotFound:
        raise not_there("key") from None
    said = f"The key {revoked.name or revoked.id} is revoked; who used it is out."
    return visit.done(said, visit.u("keys", visit.tenant))
