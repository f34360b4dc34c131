"""OpenID Connect for browsers: authorization code with PKCE, state and nonce (RFC 9700)."""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import aiohttp
import jwt

from fairlane.access.door import Door
from fairlane.access.jwks import PATIENCE, UNREACHABLE, _get
from fairlane.access.principal import Principal
from fairlane.access.refusals import ProviderUnavailable, Unauthenticated
from fairlane.config import Settings

LARGEST = 100_000


@dataclass(frozen=True)
class Signing:
    """A sign-in that is under way, as the browser that began it keeps it."""

    state: str
    nonce: str
    verifier: str
    next: str

    @classmethod
    def begun(cls, back: str) -> "Signing":
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, back)

    @classmethod
    def of(cls, cookie: str | None) -> "Signing | None":
        try:
            fields = json.loads(base64.urlsafe_b64decode(cookie or ""))
            return cls(**{name: str(value) for name, value in fields.items()})
        except (ValueError, TypeError, AttributeError):
            return None

    @property
    def cookie(self) -> str:
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    def is_answered_by(self, state: str) -> bool:
        return hmac.compare_digest(self.state.encode(), state.encode())

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class Sign:
    """The provider, asked in a person's name."""

    def __init__(self, issuer: str, client: str, secret: str | None) -> None:
        self._issuer = issuer
        self._client = client
        self._secret = secret
        self._found: dict[str, Any] | None = None

    @staticmethod
    def of(settings: Settings) -> "Sign | None":
        client = settings.oidc_client_id or settings.oidc_audience
        if settings.oidc_issuer is None or client is None:
            return None
        return _sign(settings.oidc_issuer, client, settings.oidc_client_secret)

    async def address(self, signing: Signing, back: str) -> str:
        """Where the browser goes to sign in."""
        endpoint = await self._endpoint("authorization_endpoint")
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": back,
            "scope": "openid profile email",
            "state": signing.state,
            "nonce": signing.nonce,
            "code_challenge": signing.challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"

    async def token(self, signing: Signing, code: str, address: str) -> str:
        """The id token that a code stands for."""
        endpoint = await self._endpoint("token_endpoint")
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": f"{address}/login/oidc/back",
            "client_id": self._client,
            "code_verifier": signing.verifier,
        }
        try:
            async with (
                aiohttp.ClientSession(timeout=PATIENCE) as session,
                session.post(
                    endpoint, data=fields, headers=self._proof, allow_redirects=False
                ) as response,
            ):
                body = await response.content.read(LARGEST)
                said = json.loads(body) if response.status == 200 else {}
        except UNREACHABLE as error:
            raise _away(error) from None
        text = said.get("id_token") if isinstance(said, dict) else None
        if not isinstance(text, str):
            raise Unauthenticated("the provider did not confirm the sign-in; begin again")
        return text

    @property
    def _proof(self) -> dict[str, str]:
        """The client, by its secret if it has one (RFC 6749, 2.3.1)."""
        if not self._secret:
            return {}
        pair = f"{quote_plus(self._client)}:{quote_plus(self._secret)}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    async def verified(self, signing: Signing, text: str, door: Door) -> Principal:
        """Who signed in, by the same rules as any bearer; and for this sign-in, not another."""
        who = await door.admit_client(text, self._client)
        claims = jwt.decode(text, options={"verify_signature": False})  # verified just now
        if claims.get("azp", self._client) != self._client:
            raise Unauthenticated("the sign-in was for another application; begin again")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), signing.nonce.encode()):
            raise Unauthenticated("the sign-in answers another one; begin again")
        return who

    async def _endpoint(self, name: str) -> str:
        if self._found is None:
            where = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
            try:
                async with aiohttp.ClientSession(timeout=PATIENCE) as session:
                    found = await _get(session, where)
                if found.get("issuer") != self._issuer:
                    raise ValueError(f"{where} speaks for another issuer")
            except UNREACHABLE as error:
                raise _away(error) from None
            self._found = found
        address = self._found.get(name)
        safe = ("https", urlsplit(self._issuer).scheme)
        if not isinstance(address, str) or urlsplit(address).scheme not in safe:
            raise ProviderUnavailable(f"the sign-in provider names no safe {name}")
        return address


@lru_cache(maxsize=8)
def _sign(issuer: str, client: str, secret: str | None) -> Sign:
    return Sign(issuer, client, secret)


def _away(error: BaseException) -> ProviderUnavailable:
    return ProviderUnavailable(f"the sign-in provider does not answer: {error!r}")
