"""Signing in with a token or by OpenID Connect, and out."""

from starlette.responses import RedirectResponse, Response

from fairlane.access.principal import Principal
from fairlane.access.refusals import AccessError, ProviderUnavailable, Unauthenticated
from fairlane.access.roles import Role
from fairlane.api.problems import Problem
from fairlane.web.oidc import Sign, Signing
from fairlane.web.urls import safe_next
from fairlane.web.visit import Visit

SESSION = "fairlane_session"
SIGNING = "fairlane_signing"
TEN_MINUTES = 600

REFUSAL = "This token is not good: it is unknown, expired or revoked."
NO_PAGES = (
    "A worker's token opens no pages; sign in with a viewer's, member's, admin's or operator's."
)


async def form(visit: Visit) -> Response:
    if visit.is_signed_in:
        return RedirectResponse(_onward(visit, visit.query("next")), 303)
    return await _form(visit)


async def _form(visit: Visit, error: str = "", status: int = 200, back: str = "") -> Response:
    return await visit.show(
        "login.html",
        status,
        error=error,
        next=back or visit.query("next"),
        has_provider=Sign.of(visit.here.settings) is not None,
    )


async def by_token(visit: Visit) -> Response:
    back = visit.field("next")
    try:
        _count(visit)
        who = await visit.here.door.admit(visit.field("token").strip())
        return await _open(visit, who, back)
    except Problem as problem:
        return await _form(visit, problem.detail, problem.status, back)
    except ProviderUnavailable:
        return await _form(visit, "The sign-in provider does not answer; try again.", 503, back)
    except AccessError:
        return await _form(visit, REFUSAL, 401, back)


def _count(visit: Visit) -> None:
    """Nobody guesses tokens here, though 178 bits would hold anyway."""
    client = visit.request.client.host if visit.request.client else ""
    try:
        visit.ui.logins.take(client)
    except Problem as problem:
        detail = "Too many sign-ins from this address; wait a few seconds and try again."
        raise Problem(429, detail, retry_after=problem.retry_after) from None


async def _open(visit: Visit, who: Principal, back: str) -> Response:
    if who.role is Role.WORKER:
        raise Problem(403, NO_PAGES)
    session = await visit.ui.sessions.open(who)
    if visit.session is not None:
        await visit.ui.sessions.end(visit.session)
    visit.admit(who, session)
    response = RedirectResponse(_onward(visit, back), 303)
    visit.set_cookie(response, SESSION, session.secret)
    return response


def _onward(visit: Visit, back: str) -> str:
    return safe_next(visit.front.root, back) or visit.u("home")


async def out(visit: Visit) -> Response:
    if visit.session is not None:
        await visit.ui.sessions.end(visit.session)
        visit.ui.feed.ended(visit.session.secret)
    visit.leave()
    response = RedirectResponse(visit.u("login"), 303)
    response.delete_cookie(SESSION, path=visit.cookie_path)
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


# OpenID Connect: authorization code with PKCE ------------------------------


async def to_provider(visit: Visit) -> Response:
    sign = _sign(visit)
    signing = Signing.begun(safe_next(visit.front.root, visit.query("next")) or "")
    to = await sign.address(signing, f"{visit.front.address}/login/oidc/back")
    response = RedirectResponse(to, 303)
    visit.set_cookie(response, SIGNING, signing.cookie, max_age=TEN_MINUTES)
    return response


async def from_provider(visit: Visit) -> Response:
    sign = _sign(visit)
    signing = Signing.of(visit.request.cookies.get(SIGNING))
    try:
        _count(visit)
        if signing is None or not signing.is_answered_by(visit.query("state")):
            raise Unauthenticated("the sign-in took too long, or began elsewhere; begin again")
        if visit.query("error"):
            raise Unauthenticated("the provider did not let you in")
        text = await sign.token(signing, visit.query("code"), visit.front.address)
        who = await sign.verified(signing, text, visit.here.door)
        response = await _open(visit, who, signing.next)
    except Problem as problem:
        response = await _form(visit, problem.detail, problem.status)
    except ProviderUnavailable:
        response = await _form(visit, "The sign-in provider does not answer; try again.", 503)
    except AccessError as error:
        response = await _form(visit, f"Not signed in: {error}.", 401)
    response.delete_cookie(SIGNING, path=visit.cookie_path)
    return response


def _sign(visit: Visit) -> Sign:
    found = Sign.of(visit.here.settings)
    if found is None:
        raise Problem(404, "this installation has no sign-in provider", "no-provider")
    return found
