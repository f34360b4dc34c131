"""The provider's public keys: fetched, kept, and fetched again when it signs with a new one."""

import asyncio
import json
import logging
import math
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from fairlane.access.refusals import ProviderUnavailable

log = logging.getLogger(__name__)

FRESH = 3600.0
KEPT = 86_400.0
COOL_DOWN = 10.0
PATIENCE = aiohttp.ClientTimeout(total=5)
LARGEST = 1_000_000

# By public keys alone: with a symmetric one the published key itself would be the secret.
FAMILIES = {"RSA": ("RS", "PS"), "EC": ("ES",), "OKP": ("EdDSA",)}

UNREACHABLE = (aiohttp.ClientError, OSError, TimeoutError, ValueError)


@dataclass(frozen=True)
class Key:
    """A public key, and what it may verify."""

    public: Any
    type: str
    algorithm: str | None

    def fits(self, algorithm: str) -> bool:
        """A key that says what it is for is used for nothing else."""
        if self.algorithm is not None:
            return self.algorithm == algorithm
        return algorithm.startswith(FAMILIES[self.type])


class Keys:
    """Keys by their id. An unknown id asks the provider again, once in a while and not more often:
    anybody can make up an id. Known keys are looked at again every hour, and serve for a day where
    the provider is away."""

    def __init__(self, issuer: str, jwks_url: str | None) -> None:
        self._issuer = issuer
        self._url = jwks_url
        self._keys: dict[str | None, Key] = {}
        self._fetched = self._tried = -math.inf
        self._error: ProviderUnavailable | None = None
        self._fetching = asyncio.Lock()
        self._refresh: asyncio.Task[None] | None = None

    async def key(self, key_id: str | None) -> Key | None:
        """The key of this id, or None where the provider has none. ProviderUnavailable."""
        age = time.monotonic() - self._fetched
        if key_id not in self._keys or age > KEPT:
            await self._fetch()
        elif age > FRESH and not self._fetching.locked():
            # Nobody waits for it.
            self._refresh = asyncio.create_task(self._fetch())
        if time.monotonic() - self._fetched > KEPT:
            self._keys = {}
        found = self._keys.get(key_id)
        if found is None and self._error is not None:
            raise self._error
        return found

    async def close(self) -> None:
        if self._refresh is not None:
            await self._refresh

    async def _fetch(self) -> None:
        async with self._fetching:
            # Somebody else may have fetched them while we waited.
            if time.monotonic() - self._tried < COOL_DOWN:
                return
            try:
                async with aiohttp.ClientSession(timeout=PATIENCE) as session:
                    self._keys = _usable(await _get(session, await self._address(session)))
                self._fetched, self._error = time.monotonic(), None
            except UNREACHABLE as error:
                log.warning("the sign-in provider %s does not answer: %r", self._issuer, error)
                self._error = ProviderUnavailable(
                    "the sign-in provider does not answer; try again in a moment, or use a token"
                )
            finally:
                self._tried = time.monotonic()

    async def _address(self, session: aiohttp.ClientSession) -> str:
        if self._url is None:
            where = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
            found = await _get(session, where)
            if found.get("issuer") != self._issuer:
                raise ValueError(f"{where} speaks for another issuer: {found.get('issuer')!r}")
            address = found.get("jwks_uri")
            # Whoever could change the keys on their way could sign in as anybody.
            safe = ("https", urlsplit(self._issuer).scheme)
            if not isinstance(address, str) or urlsplit(address).scheme not in safe:
                raise ValueError(f"{where} names no safe jwks_uri: {address!r}")
            self._url = address
        return self._url


async def _get(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with session.get(url, allow_redirects=False) as response:
        if response.status != 200:
            raise ValueError(f"{url} answered {response.status}")
        text = await response.content.read(LARGEST + 1)
        while len(text) <= LARGEST and (more := await response.content.read(LARGEST)):
            text += more
    if len(text) > LARGEST:
        raise ValueError(f"{url} answered more than {LARGEST} bytes")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{url} answered no JSON object")
    return found


def _usable(document: dict[str, Any]) -> dict[str | None, Key]:
    """The keys that sign and that we understand; a provider may publish others beside them."""
    keys: dict[str | None, Key] = {}
    for each in document.get("keys") or []:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig":
            continue
        if each.get("kty") not in FAMILIES:
            continue
        try:
            public = PyJWK(each).key
        except (PyJWTError, ValueError, TypeError):
            log.info("skipping a key of the sign-in provider that cannot be read")
            continue
        keys[each.get("kid")] = Key(public, each["kty"], each.get("alg"))
    return keys
