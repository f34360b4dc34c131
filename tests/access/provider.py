"""A sign-in provider: signs, and publishes its keys at a real address."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

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


@asynccontextmanager
async def a_provider() -> AsyncIterator[Provider]:
    provider = Provider()

    async def answer(request: web.Request) -> web.Response:
        provider.asked.append(request.path)
        if provider.away:
            raise web.HTTPServiceUnavailable
        if request.path == "/keys":
            return web.json_response({"keys": provider.published})
        found = {"issuer": provider.issuer, "jwks_uri": f"{provider.issuer}/keys"}
        return web.json_response({**found, **provider.discovery})

    app = web.Application()
    app.router.add_get("/keys", answer)
    app.router.add_get("/.well-known/openid-configuration", answer)
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
