"""No other site acts in somebody's name: a change comes from a page of ours, and knows a word."""

import hashlib
import hmac
from urllib.parse import urlsplit

from starlette.requests import Request

from fairlane.api.problems import Problem
from fairlane.web.proxies import Front

FIELD = "_token"
HEADER = "x-form-token"


def form_token(secret: str) -> str:
    """What every form carries; it follows from what the browser holds and tells nothing of it."""
    return hmac.new(secret.encode(), b"fairlane form", hashlib.sha256).hexdigest()


def refuse_other_sites(request: Request, front: Front) -> None:
    """Browsers say where a request comes from. One that says nothing is no browser of today."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        raise _refusal()
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != front.host:
        raise _refusal()


def refuse_without_token(given: str | None, secret: str) -> None:
    if not hmac.compare_digest((given or "").encode(), form_token(secret).encode()):
        raise Problem(
            403, "the form is not from this session; load the page again and repeat", "stale-form"
        )


def _refusal() -> Problem:
    return Problem(403, "the request comes from another site and was not carried out", "forged")
