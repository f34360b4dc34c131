"""A sign-in provider: signs, publishes its keys at a real address, and signs people in."""

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "fairlane"

MAKERS: dict[str, Any] = {
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "PS256": lambda: rsa.generate_private_key(65537, 2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}
WRITERS: dict[str, Any] = {
    "RS256": RSAAlgorithm,
    "PS256": RSAAlgorithm,
    "ES256": ECAlgorithm,
    "EdDSA": OKPAlgorithm,
}


@dataclass
class Provider:
    """What it answers may be changed while it runs."""

    issuer: str = ""
    private: dict[str, tuple[str, Any]] = field(default_factory=dict)
    published: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    away: bool = False
    discovery: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Given and not yet taken, with what they were asked for."""
    person: dict[str, Any] = field(default_factory=dict)
    """Claims of whoever sits at the browser, beside the usual ones."""
    secret: str | None = None
    """What the client proves itself by, where it must."""

    def new_key(self, kid: str, algorithm: str = "RS256", *, publish: bool = True) -> Any:
        key = MAKERS[algorithm]()
        self.private[kid] = (algorithm, key)
        if publish:
            public = WRITERS[algorithm].to_jwk(key.public_key(), as_dict=True)
            self.published.append({**public, "kid": kid, "alg": algorithm, "use": "sig"})
        return key

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "ada",
            "iat": now,
            "exp": now + 300,
            "tenant": "acme",
            "role": "member",
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def sign(self, kid: str, **changes: Any) -> str:
        algorithm, key = self.private[kid]
        return jwt.encode(self.claims(**changes), key, algorithm, headers={"kid": kid})

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes back to; the person has said yes."""
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"]}
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def exchange(self, said: dict[str, str], auth: str | None) -> dict[str, str] | None:
        """A code is good once, for who asked for it, and to the same address (RFC 6749, 7636)."""
        asked = self.codes.pop(said.get("code", ""), None)
        digest = hashlib.sha256(said.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        known = base64.b64encode(f"{AUDIENCE}:{quote_plus(str(self.secret))}".encode()).decode()
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != said.get("redirect_uri")
            or asked["client_id"] != said.get("client_id")
            or said.get("grant_type") != "authorization_code"
            or (self.secret is not None and auth != f"Basic {known}")
        ):
            return None
        kid = next(iter(self.private))
        told = {"nonce": asked["nonce"], **self.person}
        return {"token_type": "Bearer", "access_token": "none", "id_token": self.sign(kid, **told)}


@asynccontextmanager
async def a_provider() -> AsyncIterator[Provider]:
    provider = Provider()

    async def answer(request: web.Request) -> web.Response:
        provider.asked.append(request.path)
        if provider.away:
            raise web.HTTPServiceUnavailable
        if request.path == "/keys":
            return web.json_response({"keys": provider.published})
        found = {
            "issuer": provider.issuer,
            "jwks_uri": f"{provider.issuer}/keys",
            "authorization_endpoint": f"{provider.issuer}/authorize",
            "token_endpoint": f"{provider.issuer}/token",
        }
        return web.json_response({**found, **provider.discovery})

    async def authorize(request: web.Request) -> web.Response:
        raise web.HTTPFound(provider.authorize(dict(request.query)))

    async def token(request: web.Request) -> web.Response:
        said = {name: str(value) for name, value in (await request.post()).items()}
        found = provider.exchange(said, request.headers.get("Authorization"))
        if found is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response(found)

    app = web.Application()
    app.router.add_get("/keys", answer)
    app.router.add_get("/.well-known/openid-configuration", answer)
    app.router.add_get("/authorize", authorize)
    app.router.add_post("/token", token)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        provider.issuer = f"http://127.0.0.1:{port}"
        yield provider
    finally:
        await runner.cleanup()
